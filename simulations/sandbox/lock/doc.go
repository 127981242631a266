// Package lock keeps two commands from working on one folder at the same time.
//
// A lock is a file held with flock(2). The kernel drops it when its holder
// ends, however that happens, so a lock is never left behind and there is no
// stale lock to break. The file's content names the holder for the person who
// waits; nothing is decided from it.
package lock
