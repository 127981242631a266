// Package webhook puts the admission webhooks of Jobs and pods in place and
// keeps them there: the server, its certificate, and the two configuration
// objects that point the API server at it. What the handlers answer is Kueue's
// job integrations', set up by package jobs.
//
// Three parts, each with one writer:
//
//	Secret (CA, server certificate) ◀── rotated by cert-controller
//	       │
//	       ├──▶ certDir/tls.{crt,key} ──▶ server listens, reloads on change
//	       └──▶ caBundle of both configurations
//	configurations, all else ◀── configurer, from Options
//
// Invariants:
//   - The API server calls us only for objects that carry the queue label, and with
//     Volcano's integration for pods that ask for Volcano's scheduler, and in no
//     excluded namespace. Whatever else is created, updated or deleted in
//     the cluster never depends on sluice.
//   - Of the labelled objects nothing is created while sluice is down, since it
//     would start unmanaged; but what already runs may go on and end: updates
//     of pods and deletions pass.
//   - The objects are not created here but shipped empty with the deployment
//     and filled in here. So the controller needs no right to create a webhook,
//     and whoever deletes the deployment deletes the webhooks with it: none is
//     left behind to refuse objects in the name of a server that is gone.
package webhook
