// Package plane starts etcd and kube-apiserver for tests, with nothing else beside
// them: no scheduler, no kubelet, no controller. What those would do, a test does
// itself. The programs are those that simulations/sandbox builds; where none are
// built, Start says so and the test skips.
//
// It decides nothing; it applies manifests and waits for CRDs to be served.
package plane
