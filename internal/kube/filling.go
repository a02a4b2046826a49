// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/service"
)

// fillsAgainAfter is when a Service whose pools have to be filled first is asked for again
// although no lane has said that one of them is.
const fillsAgainAfter = 30 * time.Second

// filling is what a claim knows of pools that have to be filled before its Service gets the rest.
type filling struct {
	// asked is the request that ended with them; nil if there are none. It is asked again at
	// until.
	asked *balancer.Request
	until time.Time
	// pools are they, for those who hear that one is filled, and one is then set.
	pools atomic.Pointer[[]lb.PoolID]
	one   atomic.Bool
}

// over reports whether a wish has to be asked for again.
func (f *filling) over(wish *service.Spec, again string, now time.Time) bool {
	if f.asked == nil || f.one.Load() || !now.Before(f.until) || f.asked.Again != again || !reflect.DeepEqual(f.asked.Desired, wish) {
		f.end()
		return true
	}
	return false
}

// misses ends the wait for a pool whose BackendPool is gone: nobody fills it before it is made again.
func (f *filling) misses(lost v1alpha1.BackendPoolSpec) {
	if waits := f.pools.Load(); waits != nil && slices.ContainsFunc(*waits, func(id lb.PoolID) bool {
		return strings.EqualFold(id.LoadBalancer.Name, lost.LoadBalancer.Name) && strings.EqualFold(id.Name, lost.PoolName)
	}) {
		f.end()
	}
}

func (f *filling) end() {
	f.asked, f.until = nil, time.Time{}
	f.pools.Store(nil)
	f.one.Store(false)
}

// makeFirst makes the BackendPools of pools that have to be filled before flows are sent there. What
// the Service has stays as it is meanwhile, its BackendPools and addresses included. The caller
// holds the claim.
func (c *Cluster) makeFirst(ctx context.Context, s *corev1.Service, cl *claim, r balancer.Result, now time.Time) error {
	cl.level, cl.filling.asked, cl.filling.until = nil, &r.Request, now.Add(fillsAgainAfter)
	cl.filling.pools.Store(&r.Filling) // before there is a lane to tell that one is filled
	if _, err := c.createPools(ctx, s, r); err != nil {
		return err
	}
	if cl.ingress = ingressOf(r); len(r.Leave) == 0 { // who moves keeps his address until he can leave it
		return c.publish(ctx, s, cl.ingress)
	}
	return nil
}

// filled has the Services asked for again that wait for a pool.
func (c *Cluster) filled(p *v1alpha1.BackendPool, r poolupdate.Report) {
	if c.balancers == nil || !r.Settled {
		return
	}
	for _, s := range c.servedBy(p.Spec.LoadBalancer.Name) {
		name := client.ObjectKeyFromObject(s)
		cl := c.claims.known(name)
		if cl == nil {
			continue
		}
		waits := cl.filling.pools.Load()
		if waits != nil && slices.ContainsFunc(*waits, func(id lb.PoolID) bool { return id.Key() == r.Pool.Key() }) {
			cl.filling.one.Store(true)
			c.balanced.addName(name)
		}
	}
}

// isNew reports whether a pool has just been made by Weir, and holds nothing of it yet.
func (c *Cluster) isNew(p *v1alpha1.BackendPool, e *entry, st standing) bool {
	return c.snap.made(p) && (!st.taken || e.lacksPool())
}

// found has a pool looked at again that was missing when it was seen last: its load balancer is
// known to be there now.
func (c *Cluster) found(p *v1alpha1.BackendPool) {
	if e := c.statuses.known(refOf(p)); e != nil && e.lacksPool() {
		e.again(time.Now())
		c.wake.add(e.ref)
	}
}
