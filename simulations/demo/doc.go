// Package demo shows sluice at work on a real control plane: it brings up the
// sandbox, installs sluice, lets the controller run under its own service
// account, submits the gangs of deploy/examples/first-gangs as a user would, and
// shows how each fares until what can run has run.
//
//	Up ────▶ sandbox ─▶ CRDs, RBAC ─▶ credentials ─▶ controller ready ─▶ queues
//	Play ──▶ earlier gangs gone ─▶ gangs submitted ─▶ table … ─▶ Result
//	Down ──▶ controller stopped, sandbox and folder removed
//
// It decides nothing about gangs. All that it knows of them it reads from the
// API, as anybody could: Jobs, their Workloads, their pods.
//
// What holds:
//   - Every step may be repeated. What is there and good is used again, so a
//     second run takes little longer than the gangs do.
//   - While Play runs, the demo is the controller's supervisor: one that ends,
//     for whatever reason, is started again. Before and after, nobody does.
//   - Only a process that this folder's state file names, by pid and start
//     time, is ever signalled.
//   - A gang came out well if its outcome is the one in its manifest's
//     annotation, ExpectAnnotation.
//
// The end-to-end tests run this same code.
package demo
