// SPDX-License-Identifier: Apache-2.0

package services

import "weir.dev/weir/internal/servicelb"

// ProxiedBeside is what the cluster answers for a Service.
func ProxiedBeside(r *Reconciler, s servicelb.Service) string {
	return serviceCluster{r}.ProxiedBeside(s)
}
