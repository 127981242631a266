// Package kube is the little that a sandbox needs of a Kubernetes client: JSON
// over HTTPS with a client certificate, and errors that keep what the API
// server said. It knows no types; callers bring their own structs or maps.
package kube
