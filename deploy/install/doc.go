// Package install holds the ways to install sluice to one another and to the code:
// the chart and the overlays make the same objects, what they make runs on a real API
// server as it stands and goes without a trace, people may do what their roles say
// and no more, and the pages in deploy/docs say what is so.
//
// It holds no code. The rule behind all of it: a manifest is written once, in
// deploy/base, controller, agent, people or crd. The overlays name those files, and
// the chart reads the same ones through the links in chart/manifests and sets values
// in them.
//
// Generated here, and written with `go test ./deploy/install -rewrite`: the page of
// the configuration's keys, the schema of the chart's value `config`, and the page of
// the reason codes' list.
package install
