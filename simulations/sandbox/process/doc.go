// Package process starts programs that outlive the command which started
// them, finds them again later and ends them.
//
// A process is known by its Identity: its pid and the instant it was started
// at. Pids are used again, start times are not, so an Identity read from a file
// either means the very process that was written down or nobody. Every signal
// is sent after that check; nothing is ever ended by its name.
package process
