// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// fillsAgainAfter is when a Service whose pools have to be filled first is asked for again
// although no lane has said that one of them is.
const fillsAgainAfter = 30 * time.Second

// Filling is what is known of pools that have to be filled before a Service gets the rest.
type Filling struct {
	// asked is the request that ended with them; nil if there are none. It is asked again at
	// until, or once one of the pools is filled.
	asked *balancer.Request
	until time.Time
	pools []lb.PoolID
	one   bool
}

// begins takes in a result that ended with pools that have to be filled.
func (f *Filling) begins(r balancer.Result, now time.Time) {
	f.asked, f.until, f.pools = &r.Request, now.Add(fillsAgainAfter), r.Filling
}

// filled takes in that one of the pools is filled, while it waits for that.
func (f *Filling) filled(is bool) { f.one = f.one || is && f.asked != nil }

// waits reports whether it is not time yet to ask for what is wanted again.
func (f *Filling) waits(w *service.Spec, again string, now time.Time) bool {
	return f.asked != nil && !f.one && now.Before(f.until) && f.asked.Again == again && reflect.DeepEqual(f.asked.Desired, w)
}

// misses ends the wait for a pool whose BackendPool is gone: nobody fills it before it is made again.
func (f *Filling) misses(lost LostPool) {
	if slices.ContainsFunc(f.pools, func(id lb.PoolID) bool {
		return strings.EqualFold(id.LoadBalancer.Name, lost.LoadBalancer) && strings.EqualFold(id.Name, lost.Pool)
	}) {
		f.ends()
	}
}

func (f *Filling) ends() { *f = Filling{} }
