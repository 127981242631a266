package jobs

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/controller/jobframework"
)

// AddToScheme adds the kinds that the integrations read and write. Kueue's
// v1beta1 is left out on purpose: its presence would register a conversion
// webhook, and the CRDs serve v1beta2 only.
func AddToScheme(s *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, kueue.AddToScheme} {
		if err := add(s); err != nil {
			return err
		}
	}
	return jobframework.ForEachIntegration(func(name string, cb jobframework.IntegrationCallbacks) error {
		if cb.AddToScheme == nil {
			return nil
		}
		if err := cb.AddToScheme(s); err != nil {
			return fmt.Errorf("add the kinds of %s: %w", name, err)
		}
		return nil
	})
}
