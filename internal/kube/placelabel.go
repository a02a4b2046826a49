// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"fmt"
	"hash/fnv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"weir.dev/weir/internal/service"
)

// PlaceLabel is on each node where there are several load balancers, and says on which of
// them it is: the name of the configuration, fit for a label.
const PlaceLabel = "weir.dev/load-balancer"

// hashed is how much of a name stands before its hash: with it, the value has at most 63
// characters.
const hashed = validation.LabelValueMaxLength - len("-00000000")

// placeValue makes the name of a load balancer, which may have up to 80 characters and end
// in an underscore, fit for a label. Capitals make no difference to Azure, and are lost;
// where anything else is, a hash keeps two names apart.
func placeValue(name string) string {
	lower := strings.ToLower(name)
	if len(validation.IsValidLabelValue(lower)) == 0 {
		return lower
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(lower))
	return fmt.Sprintf("%s-%08x", strings.TrimRight(lower[:min(len(lower), hashed)], "-_."), h.Sum32())
}

// placeNames are the names of the configurations, by the value of the label.
func placeNames(all []service.Configuration) map[string]string {
	names := map[string]string{}
	for _, c := range all {
		names[placeValue(c.Name)] = c.Name
	}
	return names
}
