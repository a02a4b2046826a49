// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"testing"
	"time"

	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/loadbalancer/plan"
	"weir.dev/weir/internal/service"
)

// empties returns a result with interfaces that must leave a node pool.
func empties(balancerName string, interfaces int) func(*loadbalancer.Result) {
	return func(r *loadbalancer.Result) {
		r.DrainingPools = []plan.DrainingPool{{Pool: lb.PoolID{LoadBalancer: lb.LoadBalancerID{Name: balancerName}, Name: "kubernetes"}, Interfaces: interfaces}}
	}
}

// hears notifies the Service that a node BackendPool was deleted.
func (l *life) hears(balancerName string) {
	l.AddLine("a BackendPool of %s has gone; wait for it: %v", balancerName, l.r.States.AddDrainedPool(balancerName))
}

// The last Service of a load balancer with network interfaces stays, with its record, until they have left.
func TestLifeOfTheLastServiceWithInterfaces(t *testing.T) {
	set := func(o *Settings) { o.Service.Interfaces, o.ResyncPeriod = true, time.Hour }
	lives(t, "service_with_interfaces", set, func(l *life) {
		l.BeginChapter("It is served.")
		l.s.Object.Local = true
		l.served()
		l.BeginChapter("It is deleted: its rules go, and its public IP, and the interfaces have to leave.")
		l.s.Deleting = true
		l.looks()
		l.ends(empties("kubernetes", 3))
		l.eachFails(func() { l.looks() }, "empty")
		l.looks()
		l.BeginChapter("An event changes nothing. Nobody says anything for a while.")
		l.looks()
		time.Sleep(poolRetryInterval)
		l.looks()
		l.ends(empties("kubernetes", 2))
		l.looks()
		l.BeginChapter("The process begins anew.")
		l.starts()
		l.looks()
		l.ends(empties("kubernetes", 1))
		l.looks()
		l.BeginChapter("BackendPools go.")
		l.hears("kubernetes-internal")
		l.looks()
		l.hears("Kubernetes")
		l.looks()
		l.ends(func(r *loadbalancer.Result) { r.DeletedLoadBalancers = r.RemoveFrom })
		l.looks()
	})
}

// A Service that moves away is in sync meanwhile.
func TestLifeOfAServiceThatMovesWithInterfaces(t *testing.T) {
	set := func(o *Settings) { o.Service.Interfaces, o.ResyncPeriod = true, time.Hour }
	lives(t, "service_that_moves_with_interfaces", set, func(l *life) {
		l.served()
		l.BeginChapter("It moves, and was the last on the load balancer where it was.")
		l.s.Object.Labels = map[string]string{"tier": "front"}
		l.s.Object.Annotations[service.DisableTCPReset] = "true"
		l.looks()
		l.ends(empties("kubernetes", 3))
		l.looks()
		l.looks()
		l.BeginChapter("They have left.")
		l.hears("kubernetes")
		l.looks()
		l.ends(func(r *loadbalancer.Result) { r.DeletedLoadBalancers = r.RemoveFrom })
		l.looks()
		l.BeginChapter("It moves back, and is deleted before the interfaces have left.")
		l.s.Object.Labels = map[string]string{}
		l.s.Object.Annotations = map[string]string{}
		l.looks()
		l.ends(empties("lb-2", 1))
		l.looks()
		l.s.Deleting = true
		l.looks()
		l.ends(empties("lb-2", 1), empties("kubernetes", 2))
		l.looks()
		l.hears("kubernetes")
		l.looks()
		l.ends()
		l.looks()
	})
}
