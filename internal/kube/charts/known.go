// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"fmt"

	"k8s.io/client-go/discovery"
)

// Known is what a target is and knows. It is not what is known of a part of it: a chart leaves out objects of
// kinds that are not there.
func Known(target discovery.DiscoveryInterface) (version string, apis []string, err error) {
	is, err := target.ServerVersion()
	if err != nil {
		return "", nil, fmt.Errorf("version of the target: %w", err)
	}
	_, lists, err := target.ServerGroupsAndResources()
	if err != nil {
		return "", nil, fmt.Errorf("kinds of the target: %w", err)
	}
	for _, list := range lists {
		apis = append(apis, list.GroupVersion)
		for _, kind := range list.APIResources {
			apis = append(apis, list.GroupVersion+"/"+kind.Kind)
		}
	}
	return is.GitVersion, apis, nil
}
