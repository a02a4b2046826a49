// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/k8s/metadata"
)

// InternStatus returns a copy of a decoded status with exact capacities and interned strings.
func InternStatus(s *v1alpha1.BackendPoolStatus) v1alpha1.BackendPoolStatus {
	status := *s.DeepCopy()
	for i := range status.Conditions {
		c := &status.Conditions[i]
		c.Type, c.Status, c.Reason, c.Message = metadata.Intern(c.Type), metadata.Intern(c.Status), metadata.Intern(c.Reason), metadata.Intern(c.Message)
	}
	for i, ip := range status.WrittenAddresses {
		status.WrittenAddresses[i] = metadata.Intern(ip)
	}
	for i := range status.WrittenInstances {
		set := &status.WrittenInstances[i]
		set.ScaleSet = metadata.Intern(set.ScaleSet)
		for id, ip := range set.Addresses {
			set.Addresses[metadata.Intern(id)] = metadata.Intern(ip)
		}
	}
	return status
}
