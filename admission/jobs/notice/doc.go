// Package notice tells people what sluice does not do for them: fields that they
// have set and that have no effect here, and another scheduler that acts on the
// same objects, noticed by its lease, its Deployment, or the field manager of its writes.
//
// It decides nothing and changes no object; it makes events, log lines and a
// readiness check. deploy/COMPATIBILITY.md has the whole list of fields, and a test
// there holds it against the one here.
//
// Invariants: an object is told once for each of its generations; a rival is told
// once for as long as it is there.
package notice
