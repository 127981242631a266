// Package nodes reads the short YAML in which a sandbox's nodes are written and
// makes the API server's nodes so.
//
//   - {name: gpu, count: 6, gpus: 8}                       # gpu-0 … gpu-5
//   - {name: mig, resources: {nvidia.com/mig-1g.10gb: 14}} # one node, mig
//
// Reading is strict: an unknown or repeated key, a value that the API server
// would refuse, a node that two groups name are errors with file and line.
//
// Applying is idempotent and leaves alone what others did. Each node remembers,
// in an annotation, what the file said about it. A node whose text is unchanged
// is not written to, so a test's cordon or a changed GPU count stays; a changed
// one is changed where the text changed; one that the file no longer names goes,
// unless somebody else made it.
package nodes
