package sandbox

import (
	"encoding/base64"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"

	"sluice.dev/sluice/simulations/sandbox/certs"
)

// kubeconfig writes the file with which a user's clients reach the API server.
// Certificates are inside, so the file can be copied to anywhere on this machine.
func kubeconfig(a *certs.Authority, user, server, context string) ([]byte, error) {
	var data [3][]byte
	for i, path := range []string{a.Cert("ca"), a.Cert(user), a.Key(user)} {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("write kubeconfig of %s: %w", user, err)
		}
		data[i] = text
	}
	type named map[string]any
	return yaml.Marshal(map[string]any{
		"apiVersion":      "v1",
		"kind":            "Config",
		"current-context": context,
		"contexts":        []named{{"name": context, "context": named{"cluster": context, "user": user}}},
		"clusters":        []named{{"name": context, "cluster": named{"server": server, "certificate-authority-data": base64Text(data[0])}}},
		"users": []named{{"name": user, "user": named{
			"client-certificate-data": base64Text(data[1]), "client-key-data": base64Text(data[2]),
		}}},
	})
}

func base64Text(data []byte) string { return base64.StdEncoding.EncodeToString(data) }
