// Package deploy is the manifests of sluice: what is installed (crd, generated
// by generate.sh, and base) and what can be tried (examples), and the table of
// what becomes of others' objects, which programs read here. It holds no other
// code; its tests read every manifest as the API server would, and hold the
// names in them to those in the code.
package deploy
