// Package e2e tests sluice as its users meet it: on a real control plane, with
// the controller as a process of its own, under its own service account. It runs
// the code of `make demo`, and package witness watches from outside.
//
// The tests share one demo. They are skipped where the control plane's programs
// have not been built, unless SLUICE_E2E=1, which builds them first. What is
// asserted is what was reached, and of durations only the one that is promised:
// no gang stays partly released for more than five seconds.
//
//	go test ./simulations/e2e -v -timeout 40m
package e2e
