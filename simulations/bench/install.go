package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"
)

// patience bounds waits for a state that must come.
const patience = 2 * time.Minute

// install makes Kueue's kinds known to the API server.
func install(ctx context.Context, c client.Client, folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "kueue*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no CRDs of Kueue in %s: %w", folder, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for part := range strings.SplitSeq(string(text), "\n---\n") {
			crd := &apiextensionsv1.CustomResourceDefinition{}
			if err := yaml.Unmarshal([]byte(part), crd); err != nil || crd.Name == "" {
				if err != nil {
					return fmt.Errorf("read %s: %w", file, err)
				}
				continue
			}
			if err := c.Create(ctx, crd); err != nil {
				return err
			}
		}
	}
	return eventually(ctx, func() error { return c.List(ctx, &kueue.WorkloadList{}) })
}

// warmClass is the class of a Workload that is not of the load.
const warmClass = "warm"

// warm waits until the manager admits a Workload, which is deleted then.
func warm(ctx context.Context, c client.Client) error {
	class := Class{Name: warmClass, Request: 1}
	wl := workloadOf(class, queueName(0, 0), 0)
	if err := c.Create(ctx, wl); err != nil {
		return err
	}
	if err := eventually(ctx, func() error {
		if err := c.Get(ctx, client.ObjectKeyFromObject(wl), wl); err != nil {
			return err
		}
		if !apimeta.IsStatusConditionTrue(wl.Status.Conditions, kueue.WorkloadAdmitted) {
			return fmt.Errorf("conditions %v", wl.Status.Conditions)
		}
		return nil
	}); err != nil {
		return err
	}
	wl.Finalizers = nil
	if err := c.Update(ctx, wl); err != nil {
		return err
	}
	if err := c.Delete(ctx, wl); err != nil {
		return err
	}
	return eventually(ctx, func() error {
		err := c.Get(ctx, client.ObjectKeyFromObject(wl), wl)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("still there"), err)
	})
}

func eventually(ctx context.Context, reached func() error) error {
	end := time.Now().Add(patience)
	for {
		err := reached()
		if err == nil || time.Now().After(end) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}
