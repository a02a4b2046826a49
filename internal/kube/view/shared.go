// SPDX-License-Identifier: Apache-2.0

package view

import (
	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/once"
)

// Shared returns a copy of a decoded status with exact capacities and interned strings.
func Shared(s *v1alpha1.BackendPoolStatus) v1alpha1.BackendPoolStatus {
	is := *s.DeepCopy()
	for i := range is.Conditions {
		c := &is.Conditions[i]
		c.Type, c.Status, c.Reason, c.Message = once.Text(c.Type), once.Text(c.Status), once.Text(c.Reason), once.Text(c.Message)
	}
	for i, ip := range is.WrittenAddresses {
		is.WrittenAddresses[i] = once.Text(ip)
	}
	for i := range is.WrittenInstances {
		set := &is.WrittenInstances[i]
		set.ScaleSet = once.Text(set.ScaleSet)
		for id, ip := range set.Addresses {
			set.Addresses[once.Text(id)] = once.Text(ip)
		}
	}
	return is
}
