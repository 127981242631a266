// Package certs makes the keys and certificates of one control plane: an
// authority of its own, a server certificate for loopback, a client
// certificate for each identity, and the key that signs service account tokens.
//
// Everything lies in one folder that only its owner may read. What is there is
// kept, what is missing is added, so an older folder gains the certificate of a
// new identity without losing the others. Certificates last ten years: a
// sandbox is thrown away long before.
package certs
