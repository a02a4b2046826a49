// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/intern"
)

// InternStatus returns a copy of a decoded status with exact capacities and interned strings.
func InternStatus(s *v1alpha1.BackendPoolStatus) v1alpha1.BackendPoolStatus {
	is := *s.DeepCopy()
	for i := range is.Conditions {
		c := &is.Conditions[i]
		c.Type, c.Status, c.Reason, c.Message = intern.String(c.Type), intern.String(c.Status), intern.String(c.Reason), intern.String(c.Message)
	}
	for i, ip := range is.WrittenAddresses {
		is.WrittenAddresses[i] = intern.String(ip)
	}
	for i := range is.WrittenInstances {
		set := &is.WrittenInstances[i]
		set.ScaleSet = intern.String(set.ScaleSet)
		for id, ip := range set.Addresses {
			set.Addresses[intern.String(id)] = intern.String(ip)
		}
	}
	return is
}
