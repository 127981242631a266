package simulations

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Amount is so much of one resource, in base units: millicores of cpu, bytes
// of memory, units of everything else. It is never negative. math.MaxInt64
// stands for every amount that an int64 does not hold: more than anything can
// hold, and a sum with it stays that.
type Amount struct {
	Resource string
	Value    int64
}

// Amounts are of different resources, in the order of the file. Where a file
// may leave them out, nil says that it did; `{}` is empty and not nil.
type Amounts []Amount

// Of is the amount of one resource, and whether it is listed.
func (as Amounts) Of(resource string) (int64, bool) {
	for _, a := range as {
		if a.Resource == resource {
			return a.Value, true
		}
	}
	return 0, false
}

// Resource names that have a unit of their own or a meaning to the reader.
const (
	ResourceCPU    = "cpu"
	ResourceMemory = "memory"
	ResourcePods   = "pods"
	ResourceGPU    = "nvidia.com/gpu"
)

// inBytes are the resources whose fractions are rounded up to a whole unit, as
// Kubernetes does; of the others a fraction is refused.
func inBytes(name string) bool {
	return name == ResourceMemory || name == "ephemeral-storage" || strings.HasPrefix(name, "hugepages-")
}

var (
	maxUnits  = resource.NewQuantity(math.MaxInt64, resource.DecimalSI)
	maxMillis = resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI)
)

// parseAmount reads a Kubernetes quantity as base units of the resource.
func parseAmount(name, text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a quantity such as 8, 500m or 10Gi", text)
	}
	if q.Sign() < 0 {
		return 0, fmt.Errorf("%s is negative", text)
	}
	if name == ResourceCPU {
		return millis(q), nil
	}
	if q.Cmp(*maxUnits) >= 0 {
		return math.MaxInt64, nil
	}
	value := q.Value()
	if !inBytes(name) && q.Cmp(*resource.NewQuantity(value, resource.DecimalSI)) != 0 {
		return 0, fmt.Errorf("%s of %s is not a whole number", text, name)
	}
	return value, nil
}

// millis is a quantity in thousandths, rounded up, at most math.MaxInt64.
func millis(q resource.Quantity) int64 {
	if q.Cmp(*maxMillis) >= 0 {
		return math.MaxInt64
	}
	return q.MilliValue()
}

// parseWeight reads a weight in thousandths: 2, 0.5 and 500m are weights.
func parseWeight(text string) (int64, error) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a weight such as 2 or 0.5", text)
	}
	if q.Sign() < 0 {
		return 0, fmt.Errorf("%s is negative", text)
	}
	if millis(q) > maxWeightMillis {
		return 0, fmt.Errorf("%s is more than the largest weight, %d", text, maxWeightMillis/1000)
	}
	return millis(q), nil
}

// maxWeightMillis keeps products of weights and amounts comparable.
const maxWeightMillis = 1_000_000 * 1000

// parseDuration reads a Go duration that is not negative.
func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration such as 90s, 5m or 1h30m", text)
	}
	if d < 0 {
		return 0, fmt.Errorf("%s is negative", text)
	}
	return d, nil
}
