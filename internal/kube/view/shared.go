// SPDX-License-Identifier: Apache-2.0

package view

import (
	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/once"
)

// InternStatus returns a copy of a decoded status with exact capacities and interned strings.
func InternStatus(s *v1alpha1.BackendPoolStatus) v1alpha1.BackendPoolStatus {
	is := *s.DeepCopy()
	for i := range is.Conditions {
		c := &is.Conditions[i]
		c.Type, c.Status, c.Reason, c.Message = once.InternString(c.Type), once.InternString(c.Status), once.InternString(c.Reason), once.InternString(c.Message)
	}
	for i, ip := range is.WrittenAddresses {
		is.WrittenAddresses[i] = once.InternString(ip)
	}
	for i := range is.WrittenInstances {
		set := &is.WrittenInstances[i]
		set.ScaleSet = once.InternString(set.ScaleSet)
		for id, ip := range set.Addresses {
			set.Addresses[once.InternString(id)] = once.InternString(ip)
		}
	}
	return is
}
