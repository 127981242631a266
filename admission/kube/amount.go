package kube

import (
	"fmt"
	"math"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"sluice.dev/sluice/quota"
)

var (
	mostMilli = *resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)
	mostWhole = *resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
)

// thousandths says whether a resource is counted in thousandths.
func thousandths(name corev1.ResourceName) bool {
	return name == corev1.ResourceCPU || name == quota.Cards
}

// amount is q in the unit of its dimension: thousandths of cpu and of cards, whole
// units of everything else, rounded up. The error completes a sentence about the
// resource.
func amount(name corev1.ResourceName, q resource.Quantity) (int64, error) {
	if q.Sign() < 0 {
		return 0, fmt.Errorf("%s of %s is negative", name, q.String())
	}
	if thousandths(name) {
		if q.Cmp(mostMilli) > 0 {
			return 0, fmt.Errorf("%s of %s is more than can be counted", name, q.String())
		}
		return q.MilliValue(), nil
	}
	if q.Cmp(mostWhole) > 0 {
		return 0, fmt.Errorf("%s of %s is more than can be counted", name, q.String())
	}
	return q.Value(), nil
}

// quantity is the reverse of amount.
func quantity(name corev1.ResourceName, v int64) resource.Quantity {
	switch {
	case thousandths(name):
		return *resource.NewMilliQuantity(v, resource.DecimalSI)
	case name == corev1.ResourceMemory, name == corev1.ResourceEphemeralStorage, strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix):
		return *resource.NewQuantity(v, resource.BinarySI)
	default:
		return *resource.NewQuantity(v, resource.DecimalSI)
	}
}

// vector is the list in the dimensions of space. Resources of which nothing is
// asked are left out. Every resource that cannot be counted is an error.
func vector(space *quota.Space, list corev1.ResourceList) (quota.Resources, []error) {
	r := quota.Resources{}
	var errs []error
	for _, name := range sortedResources(list) {
		v, err := amount(name, list[name])
		switch {
		case err != nil:
			errs = append(errs, err)
		case v > 0:
			r.Set(space.Index(string(name)), v)
		}
	}
	return r, errs
}

// amounts is the list by dimension, zeros included.
func amounts(space *quota.Space, list corev1.ResourceList) (map[int]int64, error) {
	out := map[int]int64{}
	for _, name := range sortedResources(list) {
		v, err := amount(name, list[name])
		if err != nil {
			return nil, err
		}
		out[space.Index(string(name))] = v
	}
	return out, nil
}

func sortedResources(list corev1.ResourceList) []corev1.ResourceName {
	names := make([]corev1.ResourceName, 0, len(list))
	for name := range list {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
