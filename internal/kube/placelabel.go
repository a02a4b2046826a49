// SPDX-License-Identifier: Apache-2.0

package kube

import "weir.dev/weir/internal/service"

// PlaceLabel is on each node where there are several load balancers, and says on which of
// them it is: the name of the configuration, fit for a label.
const PlaceLabel = "weir.dev/load-balancer"

// placeNames are the names of the configurations, by the value of the label.
func placeNames(all []service.Configuration) map[string]string {
	names := map[string]string{}
	for _, c := range all {
		names[placeValue(c.Name)] = c.Name
	}
	return names
}
