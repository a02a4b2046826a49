// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/fault"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolupdate"
	"weir.dev/weir/internal/poolwrite"
)

func setOfNodes(names ...string) membership.Set {
	var set membership.Set
	for _, name := range names {
		set.Addresses = append(set.Addresses, lb.Address{Name: name, IP: nodeAt(name)})
	}
	return set
}

func leaving(name string) membership.Drain {
	return membership.Drain{Node: name, IP: nodeAt(name), Why: "out-of-service"}
}

func holds(names ...string) func(*poolupdate.Report) {
	return func(r *poolupdate.Report) {
		r.Desired, r.Observed, r.Written = len(names), len(names), nil
		for _, name := range names {
			r.Written = append(r.Written, nodeAt(name))
		}
	}
}

func downed(names ...string) func(*poolupdate.Report) {
	return func(r *poolupdate.Report) {
		for _, name := range names {
			r.Down = append(r.Down, nodeAt(name))
		}
	}
}

func finalizers(names ...string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Finalizers = names }
}

var errOnce = errors.New("500 once")

// From creation to deletion.
func TestLifeOfAPoolOfAService(t *testing.T) {
	lives(t, "pool_of_a_service", bp("a", 0, finalizers()), func(l *life) {
		l.members = setOfNodes("n1", "n2")
		updated := func(r *poolupdate.Report) { r.Updated = l.web() }

		l.When("It is new, and the API server fails once.")
		l.endpointsChange()
		l.fails["load"] = errOnce
		l.reconciles()
		delete(l.fails, "load")
		l.reconciles()
		l.becomes(finalizers(v1alpha1.Finalizer))
		l.endpointsChange()
		l.When("It has its finalizer; nothing happens twice.")
		l.reconciles()
		l.reconciles()
		l.When("A lane takes it.")
		l.attempts(&poolwrite.Intent{Written: []netip.Addr{nodeAt("n1"), nodeAt("n2")}, Add: 2, Observed: 1, Desired: 2})
		l.ends(poolwrite.Written, holds("n1", "n2"), updated, func(r *poolupdate.Report) { r.Foreign = 1 })
		l.level = true
		l.reconciles()

		l.When("Endpoints change, and the pool is level already; one is left out now, and then no more.")
		l.endpointsChange()
		l.members.Absent = []membership.Absence{{Node: "n3", Why: "it is gone"}}
		l.members.Homeless, l.members.Unfit = 1, 1
		l.endpointsChange()
		l.endpointsChange()
		l.members.Absent, l.members.Homeless, l.members.Unfit = nil, 0, 0
		l.reconciles()
		l.endpointsChange()

		l.When("A node leaves, and setting it Down fails first.")
		l.members.Draining = []membership.Drain{leaving("n1")}
		l.level = false
		l.endpointsChange()
		l.attempts(nil)
		unset := func(r *poolupdate.Report) {
			r.Admin, r.AdminTried, r.AdminRetryAt, r.Requeued = true, true, time.Now().Add(time.Second), true
		}
		l.ends(poolwrite.Retriable, unset)
		l.When("Meanwhile another joins: what is wanted changes, and is told of once.")
		l.members = setOfNodes("n1", "n2", "n3")
		l.members.Draining = []membership.Drain{leaving("n1")}
		l.endpointsChange()
		l.endpointsChange()
		l.When("Both come about.")
		l.attempts(&poolwrite.Intent{Written: []netip.Addr{nodeAt("n1"), nodeAt("n2"), nodeAt("n3")}, Down: []netip.Addr{nodeAt("n1")}, Add: 1, Alter: 1, Observed: 3, Desired: 3})
		l.ends(poolwrite.Written, holds("n1", "n2", "n3"), downed("n1"), updated, func(r *poolupdate.Report) {
			r.AdminTried, r.AdminDone, r.Downed = true, true, []netip.Addr{nodeAt("n1")}
		})
		l.level = true
		l.endpointsChange()
		l.When("The node stays after all, and setting it back fails for good.")
		l.members.Draining = nil
		l.level = false
		l.endpointsChange()
		l.attempts(nil)
		l.ends(poolwrite.Terminal, func(r *poolupdate.Report) { r.AdminTried, r.Failed = true, l.web(); r.GivenUpFor = "Terminal Bad" })
		l.ends(poolwrite.Terminal, func(r *poolupdate.Report) { r.AdminTried, r.Failed = true, l.web(); r.GivenUpFor = "Terminal Bad" })
		l.reconciles()
		l.ends(poolwrite.Written, holds("n1", "n2", "n3"), updated, func(r *poolupdate.Report) { r.Restored = []netip.Addr{nodeAt("n1")} })

		l.When("Azure asks for patience; the rest is over in time.")
		l.ends(poolwrite.Retriable, func(r *poolupdate.Report) { r.RetriesUsed, r.NextEligibleAt = 3, time.Now().Add(time.Minute) })
		l.becomes(paused)
		l.reconciles()
		time.Sleep(time.Minute)
		l.reconciles()
		l.attempts(nil)
		l.becomes(func(p *v1alpha1.BackendPool) { p.Spec.Paused = false; p.Generation++ })
		l.reconciles()
		l.ends(poolwrite.Unchanged, holds("n1", "n2", "n3"), updated)

		l.When("The selector of its Service fails.")
		l.fails["members"] = errOnce
		l.endpointsChange()
		l.becomes(func(p *v1alpha1.BackendPool) { p.Generation++ })
		l.reconciles()
		l.attempts(nil)
		delete(l.fails, "members")

		l.When("The Service is a dry run, and then it is not.")
		web := l.services[l.web()[0]]
		web.DryRun = true
		l.services[l.web()[0]] = web
		l.reconciles()
		l.Says("rehearsed%s", failing(l.Rehearsed(l.Context(), l.p, "it would hold n4")))
		l.reconciles()
		l.endpointsChange()
		web.DryRun = false
		l.services[l.web()[0]] = web
		l.reconciles()
		l.endpointsChange()
		l.attempts(nil)
		l.ends(poolwrite.Unchanged, holds("n1", "n2", "n3"), updated)

		l.When("The Service goes, and taking the addresses out fails once.")
		delete(l.services, l.web()[0])
		l.dropped = 1
		l.endpointsChange()
		l.reconciles()
		l.reconciles()
		l.attempts(nil)
		l.ends(poolwrite.Retriable)
		l.reconciles()
		time.Sleep(time.Minute)
		l.reconciles()
		l.attempts(&poolwrite.Intent{Remove: 3, Observed: 4})
		l.ends(poolwrite.Written, func(r *poolupdate.Report) { r.Observed, r.Foreign = 1, 1 })
		l.reconciles()
		l.reconciles()

		l.When("Another process starts, and finds nothing left to do.")
		l.becomes()
		l.starts()
		l.reconciles()
		l.reconciles()

		l.When("It is deleted: the pool is read once more, and it goes.")
		l.becomes(deleting)
		l.reconciles()
		l.ends(poolwrite.Unchanged)
		l.reconciles()
		l.becomes(finalizers("example.com/keeper"))
		l.reconciles()
		l.When("It is gone.")
		delete(l.pools, "shop/a")
		l.reconciles()
		l.reconciles()
	})
}

// What is specific to pools of nodes.
func TestLifeOfAPoolOfNodes(t *testing.T) {
	lives(t, "pool_of_nodes", bp("a", 0, ofNodes), func(l *life) {
		l.nodes["n1"], l.nodes["n2"] = nodeAt("n1"), nodeAt("n2")
		l.members = setOfNodes("n1", "n2") // for LevelAs
		l.When("It is new.")
		l.reconciles()
		l.attempts(&poolwrite.Intent{Written: []netip.Addr{nodeAt("n1"), nodeAt("n2")}, Add: 2})
		l.ends(poolwrite.Written, holds("n1", "n2"))
		l.level = true
		l.When("Eviction is announced to one, which stays up; then to both.")
		l.members.Spared = []membership.Drain{leaving("n1")}
		l.reconciles()
		l.reconciles()
		l.members.Spared = []membership.Drain{leaving("n1"), leaving("n2")}
		l.reconciles()
		l.members.Spared = nil
		l.reconciles()
		l.members.Spared = []membership.Drain{leaving("n2")}
		l.reconciles()
		l.When("Somebody keeps undoing it.")
		l.ends(poolwrite.Written, holds("n1", "n2"), func(r *poolupdate.Report) { r.Contested = []netip.Addr{nodeAt("n1")} })
		l.ends(poolwrite.Written, holds("n1", "n2"), func(r *poolupdate.Report) { r.Contested = []netip.Addr{nodeAt("n1")} })
		level := 0
		l.statuses.Synced(func(_ poolschedule.Ref, is metav1.Condition) {
			if is.Reason == v1alpha1.ReasonLevel {
				level++
			}
		})
		l.Says("contested %d, reasons %v", l.statuses.Contested(), level)
		l.ends(poolwrite.Unchanged, holds("n1", "n2"))
		l.Says("contested %d", l.statuses.Contested())
		l.When("A node goes.")
		delete(l.nodes, "n2")
		l.reconciles()
		l.attempts(nil)
		l.ends(poolwrite.Terminal)
		l.ends(poolwrite.Written, holds("n1"))
		l.When("A change waits, for this and that.")
		until := time.Now().Add(time.Minute)
		for _, cause := range []poolupdate.Cause{poolupdate.CauseGate, poolupdate.CauseRetryAfter, poolupdate.CauseLease, poolupdate.CausePace, poolupdate.CauseBehind} {
			l.Wait(poolupdate.Waiting{Ref: RefOf(l.p), Pool: l.Entitlement(l.p, time.Now()).Pool, Cause: cause, Until: until, Why: "somebody is there", Since: time.Now()})
			l.reconciles()
			time.Sleep(statusPatience)
			l.reconciles()
		}
		l.When("Another process starts: it asks Azure as late as that one would.")
		l.becomes()
		l.starts()
		l.reconciles()
		l.When("Its selector is one that nobody can read, and it is paused and deleted.")
		l.becomes(func(p *v1alpha1.BackendPool) {
			p.Spec.Nodes.Selector.MatchLabels = map[string]string{"a b": "c"}
		})
		l.reconciles()
		l.becomes(paused, deleting)
		l.reconciles()
		l.When("It is made anew under its name, and points elsewhere, so that nobody names the pool.")
		l.p = bp("a", 0, ofNodes, finalizers())
		l.p.UID = "b"
		l.add(l.p)
		l.becomes(func(p *v1alpha1.BackendPool) { p.Spec.PoolName = "elsewhere" })
		l.reconciles()
	})
}

// Weir creates the BackendPool, also for a load balancer that it creates.
func TestLifeOfAPoolThatWeirMakes(t *testing.T) {
	made := func(p *v1alpha1.BackendPool) { p.Status.MadeFor = "svc" }
	lives(t, "pool_that_weir_makes", bp("a", 0, made), func(l *life) {
		l.members = setOfNodes("n1")
		l.When("It comes before its pool does.")
		l.reconciles()
		l.attempts(nil)
		l.ends(poolwrite.Stale)
		l.reconciles()
		l.LookAgain(l.p, time.Now())
		l.reconciles()
		l.When("The pool is there.")
		l.attempts(&poolwrite.Intent{Written: []netip.Addr{nodeAt("n1")}, Add: 1})
		l.ends(poolwrite.Written, holds("n1"))
		l.LookAgain(l.p, time.Now())
		l.reconciles()
		l.becomes()
		l.Says("nothing foreign: %t", l.statuses.NothingForeign(l.p))
		l.When("The load balancer goes, with the pool.")
		l.ends(poolwrite.Stale)
		l.ends(poolwrite.Stale, func(r *poolupdate.Report) { r.Fault.Code = "ResourceNotFound" })
		web := l.services[l.web()[0]]
		web.HasLoadBalancer, web.Type = true, typeNodePort
		l.services[l.web()[0]] = web
		l.reconciles()
		l.attempts(nil)
		l.statuses.Known(RefOf(l.p)).Emptied()
		delete(l.services, l.web()[0])
		l.reconciles()
		l.becomes(deleting)
		l.reconciles()
	})
}

// The members are network interfaces, which join machine by machine.
func TestLifeOfAPoolOfInterfaces(t *testing.T) {
	byInterface := func(p *v1alpha1.BackendPool) { p.Spec.Membership = v1alpha1.MembershipNetworkInterface }
	lives(t, "pool_of_interfaces", bp("a", 0, ofNodes, byInterface), func(l *life) {
		l.nodes["n1"], l.nodes["n2"] = nodeAt("n1"), nodeAt("n2")
		waits := func(why string) func(*poolupdate.Report) {
			return func(r *poolupdate.Report) {
				r.States, r.Requeued, r.Desired, r.Observed = true, true, 2, 1
				r.Fault = &fault.Fault{Class: fault.Retriable, Code: "NotReady", Err: errors.New(why)}
			}
		}
		l.When("Somebody has put addresses into the pool.")
		l.reconciles()
		l.attempts(nil)
		l.ends(poolwrite.Refused, func(r *poolupdate.Report) { r.Fault.Code = poolwrite.CodeAddressPool })
		l.When("It is empty. One node has no machine yet, and the other is Down.")
		l.fails["machine of n1"] = errors.New("it has no spec.providerID yet")
		time.Sleep(5 * time.Minute)
		l.reconciles()
		l.attempts(&poolwrite.Intent{Written: []netip.Addr{nodeAt("n1"), nodeAt("n2")}, Down: []netip.Addr{nodeAt("n2")}, Add: 1, Desired: 2})
		l.ends(poolwrite.Postponed, waits("waiting: 1 of 1 machine is being written; 1 waits: node n1: it has no spec.providerID yet"), downed("n2"))
		l.reconciles()
		l.When("It is level.")
		delete(l.fails, "machine of n1")
		l.attempts(nil)
		l.ends(poolwrite.Written, holds("n1", "n2"))
		l.reconciles()
		l.When("It goes, and its machines with it.")
		l.becomes(deleting)
		l.reconciles()
		l.attempts(nil)
		l.ends(poolwrite.Postponed, waits("waiting: 2 of 2 machines are being written"), func(r *poolupdate.Report) { r.Desired = 0 })
		l.reconciles()
		l.ends(poolwrite.Written)
		l.reconciles()
	})
}

// The Service releases a load balancer with foreign addresses in its pool.
func TestLifeOfAPoolThatStaysForOthers(t *testing.T) {
	made := func(p *v1alpha1.BackendPool) { p.Status.MadeFor = "svc" }
	lives(t, "pool_that_stays_for_others", bp("a", 0, made), func(l *life) {
		l.members = setOfNodes("n1")
		l.When("It is filled.")
		l.reconciles()
		l.attempts(&poolwrite.Intent{Written: []netip.Addr{nodeAt("n1")}, Add: 1})
		l.ends(poolwrite.Written, holds("n1"))
		l.When("Its Service is being deleted, and has a load balancer still; so does the next process see it.")
		web := l.services[l.web()[0]]
		web.HasLoadBalancer, web.Deleting = true, true
		l.services[l.web()[0]] = web
		l.becomes(deleting)
		l.reconciles()
		l.starts()
		l.reconciles()
		l.When("The Service is gone.")
		delete(l.services, l.web()[0])
		l.reconciles()
		l.attempts(&poolwrite.Intent{Remove: 1})
		l.ends(poolwrite.Written)
		l.reconciles()
	})
}

// The namespace is not, or no longer, allowed to use the pool.
func TestLifeWithoutRight(t *testing.T) {
	lives(t, "without_right", bp("a", 0), func(l *life) {
		l.members = setOfNodes("n1")
		l.right["a"], l.refusal = NoRight, Refusal{Reason: v1alpha1.ReasonNotAllowed, Why: "nobody allows it"}
		l.When("Nobody allows it.")
		l.reconciles()
		l.endpointsChange()
		l.When("It is allowed, and filled.")
		delete(l.right, "a")
		l.reconciles()
		l.attempts(&poolwrite.Intent{Written: []netip.Addr{nodeAt("n1")}, Add: 1})
		l.ends(poolwrite.Written, holds("n1"))
		l.When("No more; an attempt under way ends, and another waits.")
		l.right["a"] = NoRight
		l.Wait(poolupdate.Waiting{Ref: RefOf(l.p), Pool: l.Entitlement(l.p, time.Now()).Pool, Cause: poolupdate.CauseLease, Since: time.Now()})
		l.ends(poolwrite.Postponed)
		l.ends(poolwrite.Terminal)
		l.ends(poolwrite.Shutdown)
		l.reconciles()
		l.When("Another holds the pool.")
		l.refusal.Reason = v1alpha1.ReasonDuplicate
		l.reconciles()
		l.When("Its owner does not know yet.")
		l.refusal.Reason = v1alpha1.ReasonPending
		l.reconciles()
		l.When("It is deleted without right.")
		l.refusal.Reason = v1alpha1.ReasonNotAllowed
		l.becomes(deleting)
		l.reconciles()
		l.When("It is deleted by an owner that needs its members where they are.")
		delete(l.right, "a")
		l.needed = true
		l.reconciles()
		l.When("It is deleted while paused, which is known; and never taken.")
		l.becomes(paused)
		l.reconciles()
		l.p = bp("b", 0, deleting)
		l.add(l.p)
		delete(l.pools, "shop/a")
		l.version, l.was = 0, map[string]string{}
		l.reconciles()
		l.When("What somebody else holds is not forgotten.")
		for _, refusal := range []string{v1alpha1.ReasonDuplicate, v1alpha1.ReasonNotAllowed} {
			l.right["c"], l.refusal.Reason = NoRight, refusal
			l.p = bp("c", 0, deleting)
			l.add(l.p)
			l.version = 0
			l.starts()
			l.reconciles()
		}
		l.p = bp("d", 0, deleting, func(p *v1alpha1.BackendPool) { p.Spec.PoolName = "../x" })
		l.add(l.p)
		l.version = 0
		l.reconciles()
	})
}

// The API server fails, the object changes, or another process writes.
func TestLifeWithATroubledAPIServer(t *testing.T) {
	lives(t, "troubled_api_server", bp("a", 0), func(l *life) {
		l.members = setOfNodes("n1")
		l.When("No status can be written.")
		l.fails["apply"] = errOnce
		l.reconciles()
		l.ends(poolwrite.Written, holds("n1"))
		l.ends(poolwrite.Postponed)
		l.Says("rehearsed%s", failing(l.Rehearsed(l.Context(), l.p, "much")))
		l.Says("unsaved %v", l.statuses.Unsaved())
		delete(l.fails, "apply")
		l.reconciles()
		l.Says("unsaved %v", l.statuses.Unsaved())
		l.When("The object moves on.")
		l.becomes()
		l.version++
		l.ends(poolwrite.Terminal)
		l.When("Another process has written.")
		l.becomes()
		l.version++
		l.tampered = func(s *v1alpha1.BackendPoolStatus) {
			s.WrittenAddresses = append(s.WrittenAddresses, "10.0.0.7", "nonsense")
			s.Down = append(s.Down, v1alpha1.DownAddress{Address: "10.0.0.7", Node: "n7", Reason: "gone"})
		}
		l.ends(poolwrite.Written, holds("n1"))
		l.reconciles()
		l.attempts(nil)
		l.ends(poolwrite.Written, holds("n1"))
		l.reconciles()
		l.When("Others write without end.")
		l.moves = true
		l.ends(poolwrite.Terminal)
		l.moves = false
		l.When("It cannot be read again.")
		l.version++
		l.fails["load"] = errOnce
		l.ends(poolwrite.Terminal)
		l.reconciles()
		delete(l.fails, "load")
		l.reconciles()
		l.When("It is gone, and nobody has heard.")
		l.fails["apply"] = ErrGone
		l.ends(poolwrite.Unchanged, holds("n1"), func(r *poolupdate.Report) { r.Contested = []netip.Addr{nodeAt("n1")} })
		l.ends(poolwrite.Postponed)
		l.Says("rehearsed%s", failing(l.Rehearsed(l.Context(), l.p, "more")))
		l.endpointsChange()
		l.becomes(func(p *v1alpha1.BackendPool) { p.Generation++ })
		l.reconciles()
		l.When("Others of its name are not it.")
		l.Says("rehearsed%s", failing(l.Rehearsed(l.Context(), bp("other", 0), "much")))
		l.LookAgain(bp("other", 0), time.Now())
		l.When("The finalizer cannot be taken off.")
		delete(l.fails, "apply")
		l.fails["finalizer"] = errOnce
		l.becomes(deleting)
		l.needed = true
		l.reconciles()
		l.becomes(finalizers(), func(p *v1alpha1.BackendPool) { p.DeletionTimestamp = (*metav1.Time)(nil) })
		l.reconciles()
	})
}

// Retained members: a label excludes their node, or the cluster cache may be stale.
func TestLifeOfMembersThatStay(t *testing.T) {
	lives(t, "members_that_stay", bp("a", 0, finalizers(v1alpha1.Finalizer)), func(l *life) {
		l.nodes["n1"], l.nodes["n2"], l.nodes["n3"] = nodeAt("n1"), nodeAt("n2"), nodeAt("n3")
		l.members = setOfNodes("n1", "n2")
		l.reconciles()
		l.attempts(&poolwrite.Intent{Written: []netip.Addr{nodeAt("n1"), nodeAt("n2")}, Add: 2, Desired: 2})
		l.ends(poolwrite.Written, holds("n1", "n2"))
		l.level = true

		l.When("A label keeps n2 out, which serves; n3 is no member, and does not join.")
		labelled := func(names ...string) membership.Set {
			set := setOfNodes("n1")
			for _, name := range names {
				set.Absent = append(set.Absent, membership.Absence{Node: name, Why: "it is labelled x", Meant: true})
				set.Leaving = append(set.Leaving, membership.Drain{Node: name, IP: nodeAt(name), Why: membership.ReasonExcluded})
			}
			return set
		}
		l.members, l.level = labelled("n2", "n3"), false
		l.endpointsChange()
		l.attempts(&poolwrite.Intent{Written: []netip.Addr{nodeAt("n1"), nodeAt("n2")}, Down: []netip.Addr{nodeAt("n2")}, Alter: 1, Desired: 2})
		l.ends(poolwrite.Written, holds("n1", "n2"), downed("n2"))
		l.level = true
		l.reconciles()
		l.When("It has been Down for long enough.")
		time.Sleep(membership.LeavingTimeout)
		l.level = false
		l.reconciles()
		l.attempts(nil)
		l.ends(poolwrite.Written, holds("n1"))
		l.level = true
		l.reconciles()

		l.When("Watches are broken: n1 seems to be gone, and n3 joins.")
		l.stale, l.members, l.level = true, setOfNodes("n3"), false
		l.endpointsChange()
		l.attempts(&poolwrite.Intent{Written: []netip.Addr{nodeAt("n1"), nodeAt("n3")}, Add: 1, Desired: 2})
		l.ends(poolwrite.Written, holds("n1", "n3"))
		l.level = true
		l.Says("%d stay", l.Keeper.Held())
		l.When("The Service seems to be gone.")
		delete(l.services, l.web()[0])
		l.reconciles()
		l.attempts(nil)
		l.When("It is there, and so are the watches: n1 leaves.")
		l.add(serviceOfType(corev1.ServiceTypeLoadBalancer))
		l.stale, l.level = false, false
		LookAgainAt(l.Controller, l.Keeper.Release(), time.Now())
		l.reconciles()
		l.attempts(nil)
		l.ends(poolwrite.Written, holds("n3"))
		l.Says("%d stay", l.Keeper.Held())
	})
}
