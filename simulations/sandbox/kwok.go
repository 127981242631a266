package sandbox

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"net/http"
	"os"

	"sluice.dev/sluice/simulations/sandbox/kube"
)

//go:embed kwok
var kwokFiles embed.FS

// kwokModuleStages are the stages that KWOK brings itself and that are used as
// they are.
var kwokModuleStages = []string{"node-initialize.yaml", "node-heartbeat-with-lease.yaml", "pod-ready.yaml"}

// kwokConfig puts KWOK's configuration together: its options, the stages of
// its own module, and those of this package. built maps an artifact's name to
// its path.
func kwokConfig(built map[string]string) ([]byte, error) {
	var parts [][]byte
	options, err := kwokFiles.ReadFile("kwok/options.yaml")
	if err != nil {
		return nil, err
	}
	parts = append(parts, options)
	for _, name := range kwokModuleStages {
		text, err := os.ReadFile(built[name])
		if err != nil {
			return nil, fmt.Errorf("read stage of kwok: %w", err)
		}
		parts = append(parts, text)
	}
	stages, err := kwokFiles.ReadFile("kwok/stages.yaml")
	if err != nil {
		return nil, err
	}
	return bytes.Join(append(parts, stages), []byte("\n---\n")), nil
}

// kwokRules are what KWOK may do: play nodes and the pods on them.
var kwokRules = []map[string][]string{
	{"apiGroups": {""}, "resources": {"nodes"}, "verbs": {"get", "list", "watch"}},
	{"apiGroups": {""}, "resources": {"nodes/status", "pods/status"}, "verbs": {"patch", "update"}},
	{"apiGroups": {""}, "resources": {"pods"}, "verbs": {"delete", "get", "list", "patch", "update", "watch"}},
	{"apiGroups": {""}, "resources": {"events"}, "verbs": {"create", "get", "list", "patch", "update", "watch"}},
	{"apiGroups": {"coordination.k8s.io"}, "resources": {"leases"}, "verbs": {"create", "get", "list", "patch", "update", "watch"}},
}

// prepareKWOK gives KWOK its rights and takes away the leases of the nodes. A
// KWOK holds a node's lease under a name that it makes up at each start; the
// next one would leave the node alone until that lease has run out.
func prepareKWOK(ctx context.Context, api *kube.Client) error {
	const rbac = "/apis/rbac.authorization.k8s.io/v1/"
	const name = "sandbox:kwok"
	err := api.Apply(ctx, rbac+"clusterroles/"+name, map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
		"metadata": map[string]string{"name": name}, "rules": kwokRules,
	})
	if err != nil {
		return fmt.Errorf("grant kwok its rights: %w", err)
	}
	err = api.Apply(ctx, rbac+"clusterrolebindings/"+name, map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
		"metadata": map[string]string{"name": name},
		"roleRef":  map[string]string{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
		"subjects": []map[string]string{{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": kwokUser.User}},
	})
	if err != nil {
		return fmt.Errorf("grant kwok its rights: %w", err)
	}
	err = api.Delete(ctx, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases")
	if err != nil && !kube.IsCode(err, http.StatusNotFound) {
		return fmt.Errorf("take the nodes' leases from an earlier kwok: %w", err)
	}
	return nil
}
