package build

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"runtime"
	"strings"
)

//go:generate go run ./pin

//go:embed recipes
var pins embed.FS

// Artifact is one file that a recipe yields: a program built from Package, or
// a copy of File, a path inside the recipe's module.
type Artifact struct {
	Name    string
	Package string
	File    string
}

// Recipe says how the artifacts of one product come out of its Go module.
type Recipe struct {
	Product, Module, Version string
	// Staging is the version at which the modules are served that Module
	// itself replaces by folders of its own repository. Empty when it has none.
	Staging   string
	LDFlags   []string
	Artifacts []Artifact
}

// recipes are the versions that a sandbox consists of. After a change here,
// `go generate ./build` draws the pins anew.
var recipes = []Recipe{
	{
		Product: "etcd", Module: "go.etcd.io/etcd/server/v3", Version: "v3.6.16",
		Artifacts: []Artifact{{Name: "etcd", Package: "go.etcd.io/etcd/server/v3"}},
	},
	{
		Product: "kubernetes", Module: "k8s.io/kubernetes", Version: "v1.35.4", Staging: "v0.35.4",
		LDFlags: kubernetesVersion("v1.35.4"),
		Artifacts: []Artifact{
			{Name: "kube-apiserver", Package: "k8s.io/kubernetes/cmd/kube-apiserver"},
			{Name: "kube-controller-manager", Package: "k8s.io/kubernetes/cmd/kube-controller-manager"},
			{Name: "kube-scheduler", Package: "k8s.io/kubernetes/cmd/kube-scheduler"},
		},
	},
	{
		Product: "kwok", Module: "sigs.k8s.io/kwok", Version: "v0.8.0",
		Artifacts: []Artifact{
			{Name: "kwok", Package: "sigs.k8s.io/kwok/cmd/kwok"},
			{Name: "node-initialize.yaml", File: "kustomize/stage/node/fast/node-initialize.yaml"},
			{Name: "node-heartbeat-with-lease.yaml", File: "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml"},
			{Name: "pod-ready.yaml", File: "kustomize/stage/pod/fast/pod-ready.yaml"},
		},
	},
}

// kubernetesVersion stamps the version that the programs report. Without it
// they call themselves v0.0.0-master, which clients that look at it refuse.
func kubernetesVersion(version string) []string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	values := []string{"gitVersion=" + version, "gitMajor=" + parts[0], "gitMinor=" + parts[1], "gitTreeState=archive"}
	var flags []string
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, v := range values {
			flags = append(flags, "-X "+pkg+"."+v)
		}
	}
	return flags
}

// Names lists every artifact of every recipe, in the order of their building.
func Names() []string {
	var names []string
	for _, r := range recipes {
		for _, a := range r.Artifacts {
			names = append(names, a.Name)
		}
	}
	return names
}

// lookup finds the recipe that yields an artifact.
func lookup(name string) (Recipe, Artifact, error) {
	for _, r := range recipes {
		for _, a := range r.Artifacts {
			if a.Name == name {
				return r, a, nil
			}
		}
	}
	return Recipe{}, Artifact{}, fmt.Errorf("no recipe yields %q", name)
}

// pinned returns the pinned go.mod and go.sum of the recipe.
func (r Recipe) pinned() (mod, sum []byte, err error) {
	if mod, err = pins.ReadFile("recipes/" + r.Product + ".mod"); err != nil {
		return nil, nil, err
	}
	if sum, err = pins.ReadFile("recipes/" + r.Product + ".sum"); err != nil {
		return nil, nil, err
	}
	return mod, sum, nil
}

// key names the folder of the recipe's artifacts. It differs whenever
// something differs that they are made of.
func (r Recipe) key() (string, error) {
	mod, sum, err := r.pinned()
	if err != nil {
		return "", err
	}
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%s/%s\n%v\n", runtime.GOOS, runtime.GOARCH, r)
	h.Write(mod)
	h.Write(sum)
	return fmt.Sprintf("%s-%s-%s", r.Product, r.Version, hex.EncodeToString(h.Sum(nil))[:8]), nil
}

// ldflags is the argument of -ldflags: no symbol table, no debug data, and
// the recipe's own.
func (r Recipe) ldflags() string {
	return strings.Join(append([]string{"-s", "-w"}, r.LDFlags...), " ")
}
