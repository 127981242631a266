// Package process starts a program that outlives the command which started it,
// and finds and ends it again later.
//
// A process is known by its pid and the instant at which it was started. Pids
// are used again, start times are not: an Identity that was written to a file
// means the very process that was written down, or nobody. Nothing is ever
// signalled without that check, or by its name.
//
// The sandbox has such a package of its own; it is another module, whose
// packages this one does not import.
package process
