// SPDX-License-Identifier: Apache-2.0

package publicip

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// Retained is a public IP that Weir kept for a Service that left it.
type Retained struct {
	lb.PublicIP
	// Cluster and Service, as namespace/name, are where it came from.
	Cluster, Service string
	Since            time.Time
}

// String returns the public IP, and where it came from.
func (r Retained) String() string {
	text := fmt.Sprintf("%s (%s), of %s of cluster %s since %s", r.ID.Name, r.Address, service.DescribeOwner(r.Service), r.Cluster, r.Since.UTC().Format(time.RFC3339))
	if r.UsedBy != "" {
		text += ", in use"
	}
	return text
}

// ListRetained returns the retained public IPs of a cluster, sorted by Service and name; of all clusters if it is empty.
func ListRetained(ips []lb.PublicIP, cluster string) []Retained {
	var retained []Retained
	for _, ip := range ips {
		of := lb.TagValue(ip.Tags, service.TagCluster)
		if !isRetained(ip) || cluster != "" && !strings.EqualFold(of, cluster) {
			continue
		}
		since, _ := time.Parse(time.RFC3339, lb.TagValue(ip.Tags, service.TagRetained))
		retained = append(retained, Retained{PublicIP: ip, Cluster: of, Service: lb.TagValue(ip.Tags, service.TagService), Since: since})
	}
	slices.SortFunc(retained, func(a, b Retained) int {
		return cmp.Or(strings.Compare(a.Service, b.Service), strings.Compare(a.ID.Key(), b.ID.Key()))
	})
	return retained
}

func isRetained(ip lb.PublicIP) bool { return lb.TagValue(ip.Tags, service.TagRetained) != "" }

// isRetainedFor reports whether a public IP was kept for a Service of the cluster.
func isRetainedFor(ip lb.PublicIP, cluster, key string) bool {
	return isRetained(ip) && lb.TagValue(ip.Tags, service.TagService) == key && strings.EqualFold(lb.TagValue(ip.Tags, service.TagCluster), cluster)
}

// retainAddress returns the public IP of a Service that leaves it, marked as retained. It keeps its DNS label.
func retainAddress(ip lb.PublicIP, req *Request, at time.Time) lb.PublicIP {
	ip.Tags = maps.Clone(ip.Tags)
	if lb.TagValue(ip.Tags, service.TagDNSLabel) == req.Service {
		lb.UnsetTag(ip.Tags, service.TagDNSLabel)
	}
	lb.SetTags(ip.Tags, map[string]string{service.TagService: req.Service, service.TagRetained: at.UTC().Format(time.RFC3339)})
	return ip
}

// retainedOwner returns the recorded owner of a retained public IP, otherwise the namespace that it was kept for.
func retainedOwner(ip lb.PublicIP, recorded Owner) Owner {
	if recorded.Namespace != "" || !isRetained(ip) {
		return recorded
	}
	for _, r := range ListRetained([]lb.PublicIP{ip}, "") {
		recorded = Owner{Namespace: namespaceOf(r.Service), Since: r.Since}
	}
	return recorded
}

// resolveRetained returns want with the name of a public IP retained for a Service of that name, unless the Service has
// another one.
func (r *Round) resolveRetained(want service.PublicIP, req *Request) service.PublicIP {
	existing, exists := r.known[want.ID.Key()]
	if want.UserNamed || want.Address.IsValid() || exists && existing.UsedBy != "" {
		return want
	}
	var free []lb.PublicIP
	for _, key := range slices.Sorted(maps.Keys(r.known)) {
		ip := r.known[key]
		if !isRetainedFor(ip, r.cfg.ClusterName, req.Service) || ip.Family != want.Family || resourceGroup(ip.ID).Key() != resourceGroup(want.ID).Key() {
			continue
		}
		if hasPrefixFold(r.cfg.frontendOf(ip), req.Owner) && r.stateOf(ip, want.Family, req) != occupied {
			want.ID = ip.ID
			return want
		}
		if r.canTakeRetained(ip, want, req) {
			free = append(free, ip)
		}
	}
	if exists || len(free) == 0 {
		return want
	}
	want.ID = slices.MaxFunc(free, func(a, b lb.PublicIP) int {
		return strings.Compare(lb.TagValue(a.Tags, service.TagRetained), lb.TagValue(b.Tags, service.TagRetained))
	}).ID
	return want
}

// canTakeRetained reports whether a Service that does not have a retained public IP gets it. If the owners cannot be
// read, the Service waits for it: a new address would be permanent.
func (r *Round) canTakeRetained(ip lb.PublicIP, want service.PublicIP, req *Request) bool {
	u := r.usageOf(ip, req)
	if ip.UsedBy != "" && (u.user != u.namespace || !hasPrefixFold(ip.UsedBy, r.on.String()+"/") || r.stateOf(ip, want.Family, req) == occupied) {
		return false
	}
	if checkUsable(ip, want, req.Owner, r.on) != nil || checkImmutable(ip, want) != nil {
		return false
	}
	_, err := u.checkUse()
	return err == nil || u.ownerErr != nil
}

// checkNew returns an error if the namespace of a Service has too many unused retained public IPs to get a new one.
func (r *Round) checkNew(req *Request) error {
	unused, namespace := 0, namespaceOf(req.Service)
	for _, ip := range ListRetained(slices.Collect(maps.Values(r.known)), r.cfg.ClusterName) {
		if ip.UsedBy == "" && namespaceOf(ip.Service) == namespace {
			unused++
		}
	}
	if unused < service.MaxRetained {
		return nil
	}
	return fmt.Errorf("namespace %s has %d retained public IPs that no Service uses, and gets no new one while it has %d or more: "+
		"name one of them, or have an administrator release some with weir address release", namespace, unused, service.MaxRetained)
}

func (r *Round) hasRetained() bool {
	for _, ip := range r.known {
		if isRetained(ip) {
			return true
		}
	}
	return false
}
