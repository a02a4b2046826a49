// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"hash/fnv"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// claim is what is known of the load balancer of one Service.
type claim struct {
	uid   types.UID
	owner string

	// poolLost is the BackendPool of the Service that went last; nil if that is known.
	poolLost atomic.Pointer[v1alpha1.BackendPoolSpec]

	// served is what Azure holds for the Service; nil if that is not known, or nothing. The
	// BackendPools of these pools are Weir's own, or for the same Service.
	served atomic.Pointer[served]

	// mu is held by whoever reconciles the Service, and for moments by who brings a result.
	mu sync.Mutex
	// places are the load balancers that may hold parts of the Service, as recorded: what
	// is in memory is newer than the informer's copy.
	places []string
	// groups are the further resource groups that may have public IPs of the Service.
	groups []string
	// class is that under which the Service is served, as recorded; nil if that is not.
	class *string
	// asked is the last request; running is true until its result is there, and result
	// until that is written down.
	asked   *balancer.Request
	running bool
	result  *balancer.Result
	// level is the request that Azure is known to hold, to be compared again at lookAt; the
	// zero time is never.
	level  *balancer.Request
	lookAt time.Time
	// seenBound is true once the informer's copy has shown our finalizer.
	seenBound bool
	// free is true once nothing is left of the Service, though the informer's copy may not
	// show yet that we let go of it.
	free bool
	// ingress is what the status shows then.
	ingress []corev1.LoadBalancerIngress
	// nodes are those that the security rules of the last request name.
	nodes []netip.Addr
	// contests are the fights that people know of.
	contests []balancer.Contest
	// noted is the last note of a result.
	noted string
	// leftTo is what was told of pools that stay for the addresses of others.
	leftTo map[string]bool
	// chosenBy is what the selectors of the load balancers said of the Service when it was
	// placed; see selection.
	chosenBy string
	// notBefore is what Azure asked for.
	notBefore time.Time
	// announced is true while people wait for the word that the load balancer is there.
	announced bool
	// foretold is what a dry run has said; nil if there is none.
	foretold *foretold
	// told is the last complaint; empty once the load balancer is there. trouble says which
	// state that is, and warned is the error that the log said last.
	told    string
	trouble serviceState
	warned  string
	// spare is what is known of the addresses that it would lose.
	spare spare
	// deleting is true once the Service was seen to be deleted.
	deleting bool
	// ghost is true for a Service that is gone: nothing can be written down of it any more.
	ghost bool
	// filling is what it waits for before it gets the rest.
	filling filling
	// had is true once the Service had a load balancer.
	had bool
	// unknown are the annotations without effect that people were told of.
	unknown []string
	// unenforced is what they were told of restrictions that have no effect.
	unenforced string
	// addressed is true while the Service has a load balancer, and looked once it is known
	// what becomes of it.
	addressed, looked atomic.Bool
	// state is what the metric counts.
	state atomic.Pointer[serviceState]
}

// kept reports whether our finalizer is on the Service, as far as the informer's copy tells,
// which may not show it yet: one that somebody took away is put back.
func (cl *claim) kept(s *corev1.Service) bool {
	is := bound(s)
	cl.seenBound = cl.seenBound || is
	return is || !cl.seenBound
}

// needs reports whether a BackendPool belongs to what the Service has now.
func (cl *claim) needs(p v1alpha1.BackendPoolSpec) bool {
	return cl.level != nil && strings.EqualFold(cl.level.On.Name, p.LoadBalancer.Name) &&
		slices.ContainsFunc(cl.level.Desired.Pools, func(pool service.Pool) bool { return pool.Name == p.PoolName })
}

// loses takes in which BackendPool of the Service is gone; nil is none.
func (cl *claim) loses(p *v1alpha1.BackendPoolSpec) {
	if p == nil {
		return
	}
	if cl.needs(*p) {
		cl.level = nil
	}
	cl.filling.misses(*p)
}

// isLevel reports whether Azure is known to hold a wish, where it belongs, and it is not time
// to look again.
func (cl *claim) isLevel(wish *service.Spec, again, chosenBy string, now time.Time) bool {
	return cl.level != nil && cl.level.Again == again && cl.chosenBy == chosenBy && reflect.DeepEqual(cl.level.Desired, wish) && (cl.lookAt.IsZero() || now.Before(cl.lookAt))
}

// wait returns how long until it is time to look again; 0 for never, or not now.
func (cl *claim) wait(now time.Time) time.Duration {
	if f := cl.foretold; f != nil && !f.until.IsZero() {
		return max(f.until.Sub(now), time.Millisecond)
	}
	if !cl.running && cl.filling.asked != nil {
		return max(cl.filling.until.Sub(now), time.Millisecond)
	}
	if !cl.running && cl.spare.losing != nil {
		return max(cl.spare.again.Sub(now), time.Millisecond)
	}
	if cl.running || cl.level == nil || cl.lookAt.IsZero() {
		return 0
	}
	return max(cl.lookAt.Sub(now), time.Millisecond)
}

// lookAt is when the Services of a load balancer are compared next: all at the same time,
// so that one read serves all of them, and each load balancer at a time of its own.
func lookAt(balancer string, now time.Time, period time.Duration) time.Time {
	if period <= 0 {
		return time.Time{}
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(strings.ToLower(balancer)))
	offset := time.Duration(h.Sum64() % uint64(period)) //nolint:gosec // a period is positive
	at := now.Truncate(period).Add(offset)
	for !at.After(now) {
		at = at.Add(period)
	}
	return at
}

// claims are those of all Services, by name. The zero value is ready.
type claims struct {
	mu  sync.Mutex
	all map[types.NamespacedName]*claim
}

// of returns the claim of a Service; a later Service of its name has another.
func (all *claims) of(s *corev1.Service) *claim {
	name := types.NamespacedName{Namespace: s.Namespace, Name: s.Name}
	all.mu.Lock()
	defer all.mu.Unlock()
	cl := all.all[name]
	if cl == nil || cl.uid != s.UID {
		cl = &claim{uid: s.UID, owner: service.Owner(string(s.UID)), places: listed(s, PlaceAnnotation), groups: groupsOn(s)}
		// One that has been served before is not told so again.
		cl.had = len(s.Status.LoadBalancer.Ingress) > 0
		cl.announced = !bound(s) || !cl.had
		if all.all == nil {
			all.all = map[types.NamespacedName]*claim{}
		}
		if class, recorded := s.Annotations[ClassAnnotation]; recorded {
			cl.class = &class
		}
		all.all[name] = cl
	}
	return cl
}

func (all *claims) known(name types.NamespacedName) *claim {
	all.mu.Lock()
	defer all.mu.Unlock()
	return all.all[name]
}

func (all *claims) drop(name types.NamespacedName) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.all, name)
}

// listed reads a record of a Service, each name once. Whoever may edit a Service may edit it,
// and each name costs reads.
func listed(s *corev1.Service, annotation string) []string {
	var names []string
	known := map[string]bool{}
	for name := range strings.SplitSeq(s.Annotations[annotation], ",") {
		name = strings.TrimSpace(name)
		if folded := strings.ToLower(name); name != "" && !known[folded] {
			known[folded] = true
			names = append(names, name)
		}
	}
	return names
}

// mostGroups bounds what is believed of a record of resource groups: each costs a read.
const mostGroups = 8

// groupsOn reads the record of resource groups. Whoever may edit a Service may edit it.
func groupsOn(s *corev1.Service) []string {
	groups := slices.DeleteFunc(listed(s, GroupsAnnotation), func(name string) bool {
		return lb.ResourceID{SubscriptionID: "s", ResourceGroup: name, Type: lb.TypePublicIP, Name: "n"}.Validate() != nil
	})
	return groups[:min(len(groups), mostGroups)]
}

// union returns the names of both, each once, in their order.
func union(a, b []string) []string {
	all := slices.Clone(a)
	for _, name := range b {
		if !slices.ContainsFunc(all, func(n string) bool { return strings.EqualFold(n, name) }) {
			all = append(all, name)
		}
	}
	return all
}

// withFormer adds to the load balancers that may hold parts of a Service those that are on record
// and not the cluster's any more: they stay there until all is where it belongs. Whoever may edit
// a Service may edit its record, so they are few.
func withFormer(places, recorded []string) []string {
	all := union(places, recorded)
	return all[:min(len(all), max(len(places), mostFormer))]
}

// mostFormer bounds the names of a record.
const mostFormer = 8

// groupsOf are the resource groups of a wish's public IPs, but for that where they are
// unless somebody asks for another.
func (c *Cluster) groupsOf(w *service.Spec) []string {
	var groups []string
	if w == nil {
		return nil
	}
	for _, f := range w.Frontends {
		if f.PublicIP != nil && !strings.EqualFold(f.PublicIP.ID.ResourceGroup, c.balancing.Settings.PublicIPs.ResourceGroup) {
			groups = union(groups, []string{f.PublicIP.ID.ResourceGroup})
		}
	}
	return groups
}

func namespaced(service string) types.NamespacedName {
	namespace, name, _ := strings.Cut(service, "/")
	return types.NamespacedName{Namespace: namespace, Name: name}
}
