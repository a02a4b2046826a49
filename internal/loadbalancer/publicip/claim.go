// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"fmt"
	"maps"
	"strings"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Claim returns a retained public IP, tagged for a Service (namespace/name; empty: of the same name) of a cluster,
// and whether its tags change. The tag of the time is the release by the former cluster, the tag of the cluster the
// claim of the next one: a public IP that is in use, or was not released, cannot be claimed.
func Claim(ip lb.PublicIP, cluster, key string) (next lb.PublicIP, changed bool, err error) {
	of, from := lb.TagValue(ip.Tags, service.TagService), lb.TagValue(ip.Tags, service.TagCluster)
	if key == "" {
		key = of
	}
	switch {
	case isRetainedFor(ip, cluster, key):
		return ip, false, nil
	case !isRetained(ip):
		return ip, false, fmt.Errorf("public IP %s is not retained: set %s on its Service in cluster %s, and delete the Service there first", ip.ID.Name, service.RetainAddress, orNone(from))
	case ip.UsedBy != "":
		return ip, false, fmt.Errorf("public IP %s is in use by %s: delete %s of cluster %s first", ip.ID.Name, ip.UsedBy, service.DescribeOwner(of), from)
	}
	namespace := namespaceOf(key)
	granted, invalid := service.EvaluatePublicIP(namespace, "", lb.ResourceID{}, ip.ID, ip.Tags)
	switch {
	case invalid != nil:
		return ip, false, invalid
	case !granted.Use && (granted.FromTag || namespace != namespaceOf(of)):
		return ip, false, fmt.Errorf("public IP %s was retained for %s, and Services of namespace %s need a grant: add %s to its tag %s",
			ip.ID.Name, service.DescribeOwner(of), namespace, namespace, service.NamespacesTag)
	}
	next = ip
	next.Tags = maps.Clone(ip.Tags)
	lb.SetTags(next.Tags, map[string]string{service.TagCluster: cluster, service.TagService: strings.TrimSpace(key)})
	return next, true, nil
}
