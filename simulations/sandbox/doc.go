// Package sandbox runs a real Kubernetes control plane on one machine, with
// nodes that KWOK plays: etcd, kube-apiserver, kube-controller-manager,
// kube-scheduler and kwok as processes on loopback, with certificates, RBAC and
// node authorization as a cluster has them.
//
// A sandbox is a folder. Everything it knows is in there: certificates, data,
// logs, and the state file with its settings, ports and processes.
//
//	            up                         stop NAME
//	(nothing) ──────▶ every component ◀──────────────▶ one component
//	    ▲              of its mode runs    start NAME     does not run
//	    │ reset              │ ▲
//	    │               down ▼ │ up
//	    └──────────── nothing runs, data kept
//
// What holds:
//   - Up may be called at any time, any number of times, and after any
//     interruption: it starts what does not run, restarts what runs with other
//     arguments than it should, and leaves the rest alone.
//   - A process is written to the state file as soon as it is started, as pid
//     and start time. Only a process that still has both is ever signalled.
//   - Commands on one sandbox take turns; sandboxes in different folders share
//     nothing but the cache of programs.
//
// How programs are built is in package build, how processes are held in
// process, what nodes look like in nodes. What runs inside the cluster is the
// business of whoever asked for the sandbox.
package sandbox
