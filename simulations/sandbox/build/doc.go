// Package build makes the programs of a Kubernetes control plane out of their
// Go modules and keeps them in a cache folder.
//
// A Recipe names a module, its version, the programs in it and the pinned
// go.mod and go.sum they are built from; the recipes and their pins are part of
// this package. Nothing is downloaded but Go modules, through the go command,
// and every one of them must match its pinned hash.
//
//	CACHE/src/PRODUCT/          go.mod, go.sum and the log of the last build
//	CACHE/bin/PRODUCT-VERSION-HASH/PROGRAM
//	CACHE/build.lock            held while something is built
//
// What holds:
//   - A program in CACHE/bin is whole. It is built elsewhere in the cache and
//     renamed into place, so a build that was interrupted leaves nothing behind
//     but the go command's own cache, from which the next one goes on.
//   - HASH covers all that a recipe is made of. A changed recipe is built
//     anew, an unchanged one never.
//   - Two builders share a cache: the second waits for the first and then uses
//     what it built.
//
// What the programs are started with, and when, is left to others.
package build
