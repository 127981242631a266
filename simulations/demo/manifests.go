package demo

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// readFolder reads every manifest of a folder, in the order of the file names
// and within a file from top to bottom.
func readFolder(folder string) ([]*unstructured.Unstructured, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("there is no manifest in %s", folder)
	}
	slices.Sort(files)
	var all []*unstructured.Unstructured
	for _, file := range files {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		objects, err := readManifest(file)
		if err != nil {
			return nil, err
		}
		all = append(all, objects...)
	}
	return all, nil
}

// readManifest reads the objects of one file.
func readManifest(file string) ([]*unstructured.Unstructured, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for number := 1; ; number++ {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s, document %d: %w", file, number, err)
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, fmt.Errorf("read %s, document %d: %w", file, number, err)
		}
		if len(object.Object) == 0 { // only comments
			continue
		}
		if object.GetKind() == "" || object.GetName() == "" {
			return nil, fmt.Errorf("read %s, document %d: want a kind and a metadata.name", file, number)
		}
		objects = append(objects, object)
	}
}

// rank orders kinds so that each comes after what it needs.
func rank(object *unstructured.Unstructured) int {
	order := []string{"Namespace", "CustomResourceDefinition", "ServiceAccount", "ResourceFlavor", "Cohort", "ClusterQueue", "LocalQueue"}
	if i := slices.Index(order, object.GetKind()); i >= 0 {
		return i
	}
	return len(order)
}

func inOrder(objects []*unstructured.Unstructured) []*unstructured.Unstructured {
	sorted := slices.Clone(objects)
	slices.SortStableFunc(sorted, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return sorted
}

func describe(object *unstructured.Unstructured) string {
	if object.GetNamespace() == "" {
		return object.GetKind() + " " + object.GetName()
	}
	return object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}
