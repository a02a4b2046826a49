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
	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/pool/diff"
	"weir.dev/weir/internal/pool/membership"
	"weir.dev/weir/internal/pool/schedule"
	"weir.dev/weir/internal/pool/updater"
)

func setOfNodes(names ...string) membership.Set {
	var set membership.Set
	for _, name := range names {
		set.Addresses = append(set.Addresses, lb.Address{Name: name, IP: nodeIP(name)})
	}
	return set
}

func newDrain(name string) membership.Drain {
	return membership.Drain{Node: name, IP: nodeIP(name), Reason: "out-of-service"}
}

func withMembers(names ...string) func(*updater.Report) {
	return func(r *updater.Report) {
		r.Desired, r.Observed, r.Written = len(names), len(names), nil
		for _, name := range names {
			r.Written = append(r.Written, nodeIP(name))
		}
	}
}

func withDown(names ...string) func(*updater.Report) {
	return func(r *updater.Report) {
		for _, name := range names {
			r.Down = append(r.Down, nodeIP(name))
		}
	}
}

func withFinalizers(names ...string) func(*v1alpha1.BackendPool) {
	return func(p *v1alpha1.BackendPool) { p.Finalizers = names }
}

var errOnce = errors.New("500 once")

// From creation to deletion.
func TestLifeOfAPoolOfAService(t *testing.T) {
	runScenario(t, "pool_of_a_service", bp("a", 0, withFinalizers()), func(l *life) {
		l.members = setOfNodes("n1", "n2")
		updated := func(r *updater.Report) { r.Updated = l.webService() }

		l.BeginChapter("It is new, and the API server fails once.")
		l.changeEndpoints()
		l.failures["load"] = errOnce
		l.reconcilePool()
		delete(l.failures, "load")
		l.reconcilePool()
		l.updatePool(withFinalizers(v1alpha1.Finalizer))
		l.changeEndpoints()
		l.BeginChapter("It has its finalizer; nothing happens twice.")
		l.reconcilePool()
		l.reconcilePool()
		l.BeginChapter("A lane takes it.")
		l.startAttempt(&diff.Intent{Written: []netip.Addr{nodeIP("n1"), nodeIP("n2")}, Add: 2, Observed: 1, Desired: 2})
		l.endAttempt(diff.Written, withMembers("n1", "n2"), updated, func(r *updater.Report) { r.Foreign = 1 })
		l.inSync = true
		l.reconcilePool()

		l.BeginChapter("Endpoints change, and the pool is in sync already; one is left out now, and then no more.")
		l.changeEndpoints()
		l.members.NonMembers = []membership.NonMember{{Node: "n3", Reason: "it is gone"}}
		l.members.EndpointsWithoutNode, l.members.UnsupportedSlices = 1, 1
		l.changeEndpoints()
		l.changeEndpoints()
		l.members.NonMembers, l.members.EndpointsWithoutNode, l.members.UnsupportedSlices = nil, 0, 0
		l.reconcilePool()
		l.changeEndpoints()

		l.BeginChapter("A node leaves, and setting it Down fails first.")
		l.members.Draining = []membership.Drain{newDrain("n1")}
		l.inSync = false
		l.changeEndpoints()
		l.startAttempt(nil)
		unset := func(r *updater.Report) {
			r.Admin, r.AdminAttempted, r.AdminRetryAt, r.WillRetry = true, true, time.Now().Add(time.Second), true
		}
		l.endAttempt(diff.Retriable, unset)
		l.BeginChapter("Meanwhile another joins: what is wanted changes, and is told of once.")
		l.members = setOfNodes("n1", "n2", "n3")
		l.members.Draining = []membership.Drain{newDrain("n1")}
		l.changeEndpoints()
		l.changeEndpoints()
		l.BeginChapter("Both come about.")
		l.startAttempt(&diff.Intent{Written: []netip.Addr{nodeIP("n1"), nodeIP("n2"), nodeIP("n3")}, Down: []netip.Addr{nodeIP("n1")}, Add: 1, Update: 1, Observed: 3, Desired: 3})
		l.endAttempt(diff.Written, withMembers("n1", "n2", "n3"), withDown("n1"), updated, func(r *updater.Report) {
			r.AdminAttempted, r.AdminDone, r.MarkedDown = true, true, []netip.Addr{nodeIP("n1")}
		})
		l.inSync = true
		l.changeEndpoints()
		l.BeginChapter("The node stays after all, and setting it back fails for good.")
		l.members.Draining = nil
		l.inSync = false
		l.changeEndpoints()
		l.startAttempt(nil)
		l.endAttempt(diff.Terminal, func(r *updater.Report) {
			r.AdminAttempted, r.Failed = true, l.webService()
			r.FailureReason = "Terminal Bad"
		})
		l.endAttempt(diff.Terminal, func(r *updater.Report) {
			r.AdminAttempted, r.Failed = true, l.webService()
			r.FailureReason = "Terminal Bad"
		})
		l.reconcilePool()
		l.endAttempt(diff.Written, withMembers("n1", "n2", "n3"), updated, func(r *updater.Report) { r.MarkedUp = []netip.Addr{nodeIP("n1")} })

		l.BeginChapter("Azure asks for patience; the rest is over in time.")
		l.endAttempt(diff.Retriable, func(r *updater.Report) { r.RetriesUsed, r.NextEligibleAt = 3, time.Now().Add(time.Minute) })
		l.updatePool(asPaused)
		l.reconcilePool()
		time.Sleep(time.Minute)
		l.reconcilePool()
		l.startAttempt(nil)
		l.updatePool(func(p *v1alpha1.BackendPool) { p.Spec.Paused = false; p.Generation++ })
		l.reconcilePool()
		l.endAttempt(diff.Unchanged, withMembers("n1", "n2", "n3"), updated)

		l.BeginChapter("The selector of its Service fails.")
		l.failures["members"] = errOnce
		l.changeEndpoints()
		l.updatePool(func(p *v1alpha1.BackendPool) { p.Generation++ })
		l.reconcilePool()
		l.startAttempt(nil)
		delete(l.failures, "members")

		l.BeginChapter("The Service is a dry run, and then it is not.")
		web := l.services[l.webService()[0]]
		web.DryRun = true
		l.services[l.webService()[0]] = web
		l.reconcilePool()
		l.AddLine("rehearsed%s", failing(l.RecordPlan(l.Context(), l.p, "it would hold n4")))
		l.reconcilePool()
		l.changeEndpoints()
		web.DryRun = false
		l.services[l.webService()[0]] = web
		l.reconcilePool()
		l.changeEndpoints()
		l.startAttempt(nil)
		l.endAttempt(diff.Unchanged, withMembers("n1", "n2", "n3"), updated)

		l.BeginChapter("The Service goes, and taking the addresses out fails once.")
		delete(l.services, l.webService()[0])
		l.dropped = 1
		l.changeEndpoints()
		l.reconcilePool()
		l.reconcilePool()
		l.startAttempt(nil)
		l.endAttempt(diff.Retriable)
		l.reconcilePool()
		time.Sleep(time.Minute)
		l.reconcilePool()
		l.startAttempt(&diff.Intent{Remove: 3, Observed: 4})
		l.endAttempt(diff.Written, func(r *updater.Report) { r.Observed, r.Foreign = 1, 1 })
		l.reconcilePool()
		l.reconcilePool()

		l.BeginChapter("Another process starts, and finds nothing left to do.")
		l.updatePool()
		l.startProcess()
		l.reconcilePool()
		l.reconcilePool()

		l.BeginChapter("It is deleted: the pool is read once more, and it goes.")
		l.updatePool(deleting)
		l.reconcilePool()
		l.endAttempt(diff.Unchanged)
		l.reconcilePool()
		l.updatePool(withFinalizers("example.com/keeper"))
		l.reconcilePool()
		l.BeginChapter("It is gone.")
		delete(l.pools, "shop/a")
		l.reconcilePool()
		l.reconcilePool()
	})
}

// What is specific to pools of nodes.
func TestLifeOfAPoolOfNodes(t *testing.T) {
	runScenario(t, "pool_of_nodes", bp("a", 0, asNodePool), func(l *life) {
		l.nodes["n1"], l.nodes["n2"] = nodeIP("n1"), nodeIP("n2")
		l.members = setOfNodes("n1", "n2") // for IsInSync
		l.BeginChapter("It is new.")
		l.reconcilePool()
		l.startAttempt(&diff.Intent{Written: []netip.Addr{nodeIP("n1"), nodeIP("n2")}, Add: 2})
		l.endAttempt(diff.Written, withMembers("n1", "n2"))
		l.inSync = true
		l.BeginChapter("Eviction is announced to one, which stays up; then to both.")
		l.members.KeptUp = []membership.Drain{newDrain("n1")}
		l.reconcilePool()
		l.reconcilePool()
		l.members.KeptUp = []membership.Drain{newDrain("n1"), newDrain("n2")}
		l.reconcilePool()
		l.members.KeptUp = nil
		l.reconcilePool()
		l.members.KeptUp = []membership.Drain{newDrain("n2")}
		l.reconcilePool()
		l.BeginChapter("Somebody keeps undoing it.")
		l.endAttempt(diff.Written, withMembers("n1", "n2"), func(r *updater.Report) { r.Conflicting = []netip.Addr{nodeIP("n1")} })
		l.endAttempt(diff.Written, withMembers("n1", "n2"), func(r *updater.Report) { r.Conflicting = []netip.Addr{nodeIP("n1")} })
		inSync := 0
		l.statuses.Synced(func(_ schedule.Ref, cond metav1.Condition) {
			if cond.Reason == v1alpha1.ReasonInSync {
				inSync++
			}
		})
		l.AddLine("contested %d, reasons %v", l.statuses.CountConflicting(), inSync)
		l.endAttempt(diff.Unchanged, withMembers("n1", "n2"))
		l.AddLine("contested %d", l.statuses.CountConflicting())
		l.BeginChapter("A node goes.")
		delete(l.nodes, "n2")
		l.reconcilePool()
		l.startAttempt(nil)
		l.endAttempt(diff.Terminal)
		l.endAttempt(diff.Written, withMembers("n1"))
		l.BeginChapter("A change waits, for this and that.")
		until := time.Now().Add(time.Minute)
		for _, cause := range []updater.Cause{updater.CauseGate, updater.CauseRetryAfter, updater.CauseLease, updater.CausePace, updater.CauseBehind} {
			l.ReportWait(updater.Waiting{Ref: RefOf(l.p), Pool: l.ResolveBinding(l.p, time.Now()).Pool, Cause: cause, Until: until, Message: "somebody is there", Since: time.Now()})
			l.reconcilePool()
			time.Sleep(maxStatusDelay)
			l.reconcilePool()
		}
		l.BeginChapter("Another process starts: it asks Azure as late as that one would.")
		l.updatePool()
		l.startProcess()
		l.reconcilePool()
		l.BeginChapter("Its selector is one that nobody can read, and it is paused and deleted.")
		l.updatePool(func(p *v1alpha1.BackendPool) {
			p.Spec.Nodes.Selector.MatchLabels = map[string]string{"a b": "c"}
		})
		l.reconcilePool()
		l.updatePool(asPaused, deleting)
		l.reconcilePool()
		l.BeginChapter("It is made anew under its name, and points elsewhere, so that nobody names the pool.")
		l.p = bp("a", 0, asNodePool, withFinalizers())
		l.p.UID = "b"
		l.addObjects(l.p)
		l.updatePool(func(p *v1alpha1.BackendPool) { p.Spec.PoolName = "elsewhere" })
		l.reconcilePool()
	})
}

// Weir creates the BackendPool, also for a load balancer that it creates.
func TestLifeOfAPoolThatWeirMakes(t *testing.T) {
	made := func(p *v1alpha1.BackendPool) { p.Status.MadeFor = "svc" }
	runScenario(t, "pool_that_weir_makes", bp("a", 0, made), func(l *life) {
		l.members = setOfNodes("n1")
		l.BeginChapter("It comes before its pool does.")
		l.reconcilePool()
		l.startAttempt(nil)
		l.endAttempt(diff.Stale)
		l.reconcilePool()
		l.RecheckMissing(l.p, time.Now())
		l.reconcilePool()
		l.BeginChapter("The pool is there.")
		l.startAttempt(&diff.Intent{Written: []netip.Addr{nodeIP("n1")}, Add: 1})
		l.endAttempt(diff.Written, withMembers("n1"))
		l.RecheckMissing(l.p, time.Now())
		l.reconcilePool()
		l.updatePool()
		l.AddLine("nothing foreign: %t", l.statuses.HasNoForeign(l.p))
		l.BeginChapter("The load balancer goes, with the pool.")
		l.endAttempt(diff.Stale)
		l.endAttempt(diff.Stale, func(r *updater.Report) { r.Fault.Code = "ResourceNotFound" })
		web := l.services[l.webService()[0]]
		web.HasLoadBalancer, web.Type = true, typeNodePort
		l.services[l.webService()[0]] = web
		l.reconcilePool()
		l.startAttempt(nil)
		l.statuses.GetEntry(RefOf(l.p)).MarkPoolDeleted()
		delete(l.services, l.webService()[0])
		l.reconcilePool()
		l.updatePool(deleting)
		l.reconcilePool()
	})
}

// The members are network interfaces, which join machine by machine.
func TestLifeOfAPoolOfInterfaces(t *testing.T) {
	byInterface := func(p *v1alpha1.BackendPool) { p.Spec.Membership = v1alpha1.MembershipNetworkInterface }
	runScenario(t, "pool_of_interfaces", bp("a", 0, asNodePool, byInterface), func(l *life) {
		l.nodes["n1"], l.nodes["n2"] = nodeIP("n1"), nodeIP("n2")
		waits := func(reason string) func(*updater.Report) {
			return func(r *updater.Report) {
				r.StatesInSync, r.WillRetry, r.Desired, r.Observed = true, true, 2, 1
				r.Fault = &armerror.Fault{Class: armerror.Retriable, Code: "NotReady", Err: errors.New(reason)}
			}
		}
		l.BeginChapter("Somebody has put addresses into the pool.")
		l.reconcilePool()
		l.startAttempt(nil)
		l.endAttempt(diff.Rejected, func(r *updater.Report) { r.Fault.Code = diff.CodeAddressPool })
		l.BeginChapter("It is empty. One node has no machine yet, and the other is Down.")
		l.failures["machine of n1"] = errors.New("it has no spec.providerID yet")
		time.Sleep(5 * time.Minute)
		l.reconcilePool()
		l.startAttempt(&diff.Intent{Written: []netip.Addr{nodeIP("n1"), nodeIP("n2")}, Down: []netip.Addr{nodeIP("n2")}, Add: 1, Desired: 2})
		l.endAttempt(diff.Postponed, waits("waiting: 1 of 1 machine is being written; 1 waits: node n1: it has no spec.providerID yet"), withDown("n2"))
		l.reconcilePool()
		l.BeginChapter("It is in sync.")
		delete(l.failures, "machine of n1")
		l.startAttempt(nil)
		l.endAttempt(diff.Written, withMembers("n1", "n2"))
		l.reconcilePool()
		l.BeginChapter("It goes, and its machines with it.")
		l.updatePool(deleting)
		l.reconcilePool()
		l.startAttempt(nil)
		l.endAttempt(diff.Postponed, waits("waiting: 2 of 2 machines are being written"), func(r *updater.Report) { r.Desired = 0 })
		l.reconcilePool()
		l.endAttempt(diff.Written)
		l.reconcilePool()
	})
}

// The Service releases a load balancer with foreign addresses in its pool.
func TestLifeOfAPoolThatStaysForOthers(t *testing.T) {
	made := func(p *v1alpha1.BackendPool) { p.Status.MadeFor = "svc" }
	runScenario(t, "pool_that_stays_for_others", bp("a", 0, made), func(l *life) {
		l.members = setOfNodes("n1")
		l.BeginChapter("It is filled.")
		l.reconcilePool()
		l.startAttempt(&diff.Intent{Written: []netip.Addr{nodeIP("n1")}, Add: 1})
		l.endAttempt(diff.Written, withMembers("n1"))
		l.BeginChapter("Its Service is being deleted, and has a load balancer still; so does the next process see it.")
		web := l.services[l.webService()[0]]
		web.HasLoadBalancer, web.Deleting = true, true
		l.services[l.webService()[0]] = web
		l.updatePool(deleting)
		l.reconcilePool()
		l.startProcess()
		l.reconcilePool()
		l.BeginChapter("The Service is gone.")
		delete(l.services, l.webService()[0])
		l.reconcilePool()
		l.startAttempt(&diff.Intent{Remove: 1})
		l.endAttempt(diff.Written)
		l.reconcilePool()
	})
}

// The namespace is not, or no longer, allowed to use the pool.
func TestLifeWithoutPermission(t *testing.T) {
	runScenario(t, "without_right", bp("a", 0), func(l *life) {
		l.members = setOfNodes("n1")
		l.permissions["a"], l.rejection = NoPermission, Rejection{Reason: v1alpha1.ReasonNotAllowed, Message: "nobody allows it"}
		l.BeginChapter("Nobody allows it.")
		l.reconcilePool()
		l.changeEndpoints()
		l.BeginChapter("It is allowed, and filled.")
		delete(l.permissions, "a")
		l.reconcilePool()
		l.startAttempt(&diff.Intent{Written: []netip.Addr{nodeIP("n1")}, Add: 1})
		l.endAttempt(diff.Written, withMembers("n1"))
		l.BeginChapter("No more; an attempt under way ends, and another waits.")
		l.permissions["a"] = NoPermission
		l.ReportWait(updater.Waiting{Ref: RefOf(l.p), Pool: l.ResolveBinding(l.p, time.Now()).Pool, Cause: updater.CauseLease, Since: time.Now()})
		l.endAttempt(diff.Postponed)
		l.endAttempt(diff.Terminal)
		l.endAttempt(diff.Shutdown)
		l.reconcilePool()
		l.BeginChapter("Another holds the pool.")
		l.rejection.Reason = v1alpha1.ReasonDuplicate
		l.reconcilePool()
		l.BeginChapter("Its owner does not know yet.")
		l.rejection.Reason = v1alpha1.ReasonPending
		l.reconcilePool()
		l.BeginChapter("It is deleted without right.")
		l.rejection.Reason = v1alpha1.ReasonNotAllowed
		l.updatePool(deleting)
		l.reconcilePool()
		l.BeginChapter("It is deleted by an owner that needs its members where they are.")
		delete(l.permissions, "a")
		l.isNeeded = true
		l.reconcilePool()
		l.BeginChapter("It is deleted while paused, which is known; and never taken.")
		l.updatePool(asPaused)
		l.reconcilePool()
		l.p = bp("b", 0, deleting)
		l.addObjects(l.p)
		delete(l.pools, "shop/a")
		l.version, l.lastShown = 0, map[string]string{}
		l.reconcilePool()
		l.BeginChapter("What another client holds is not forgotten.")
		for _, refusal := range []string{v1alpha1.ReasonDuplicate, v1alpha1.ReasonNotAllowed} {
			l.permissions["c"], l.rejection.Reason = NoPermission, refusal
			l.p = bp("c", 0, deleting)
			l.addObjects(l.p)
			l.version = 0
			l.startProcess()
			l.reconcilePool()
		}
		l.p = bp("d", 0, deleting, func(p *v1alpha1.BackendPool) { p.Spec.PoolName = "../x" })
		l.addObjects(l.p)
		l.version = 0
		l.reconcilePool()
	})
}

// The API server fails, the object changes, or another process writes.
func TestLifeWithATroubledAPIServer(t *testing.T) {
	runScenario(t, "troubled_api_server", bp("a", 0), func(l *life) {
		l.members = setOfNodes("n1")
		l.BeginChapter("No status can be written.")
		l.failures["apply"] = errOnce
		l.reconcilePool()
		l.endAttempt(diff.Written, withMembers("n1"))
		l.endAttempt(diff.Postponed)
		l.AddLine("rehearsed%s", failing(l.RecordPlan(l.Context(), l.p, "much")))
		l.AddLine("unsaved %v", l.statuses.ListUnsaved())
		delete(l.failures, "apply")
		l.reconcilePool()
		l.AddLine("unsaved %v", l.statuses.ListUnsaved())
		l.BeginChapter("The object moves on.")
		l.updatePool()
		l.version++
		l.endAttempt(diff.Terminal)
		l.BeginChapter("Another process has written.")
		l.updatePool()
		l.version++
		l.tamperNext = func(s *v1alpha1.BackendPoolStatus) {
			s.WrittenAddresses = append(s.WrittenAddresses, "10.0.0.7", "nonsense")
			s.Down = append(s.Down, v1alpha1.DownAddress{Address: "10.0.0.7", Node: "n7", Reason: "gone"})
		}
		l.endAttempt(diff.Written, withMembers("n1"))
		l.reconcilePool()
		l.startAttempt(nil)
		l.endAttempt(diff.Written, withMembers("n1"))
		l.reconcilePool()
		l.BeginChapter("Others write without end.")
		l.isConflicting = true
		l.endAttempt(diff.Terminal)
		l.isConflicting = false
		l.BeginChapter("It cannot be read again.")
		l.version++
		l.failures["load"] = errOnce
		l.endAttempt(diff.Terminal)
		l.reconcilePool()
		delete(l.failures, "load")
		l.reconcilePool()
		l.BeginChapter("It is gone, and nobody has heard.")
		l.failures["apply"] = metadata.ErrDeleted
		l.endAttempt(diff.Unchanged, withMembers("n1"), func(r *updater.Report) { r.Conflicting = []netip.Addr{nodeIP("n1")} })
		l.endAttempt(diff.Postponed)
		l.AddLine("rehearsed%s", failing(l.RecordPlan(l.Context(), l.p, "more")))
		l.changeEndpoints()
		l.updatePool(func(p *v1alpha1.BackendPool) { p.Generation++ })
		l.reconcilePool()
		l.BeginChapter("Others of its name are not it.")
		l.AddLine("rehearsed%s", failing(l.RecordPlan(l.Context(), bp("other", 0), "much")))
		l.RecheckMissing(bp("other", 0), time.Now())
		l.BeginChapter("The finalizer cannot be taken off.")
		delete(l.failures, "apply")
		l.failures["finalizer"] = errOnce
		l.updatePool(deleting)
		l.isNeeded = true
		l.reconcilePool()
		l.updatePool(withFinalizers(), func(p *v1alpha1.BackendPool) { p.DeletionTimestamp = (*metav1.Time)(nil) })
		l.reconcilePool()
	})
}

// Retained members: a label excludes their node, or the cluster cache may be stale.
func TestLifeOfMembersThatStay(t *testing.T) {
	runScenario(t, "members_that_stay", bp("a", 0, withFinalizers(v1alpha1.Finalizer)), func(l *life) {
		l.nodes["n1"], l.nodes["n2"], l.nodes["n3"] = nodeIP("n1"), nodeIP("n2"), nodeIP("n3")
		l.members = setOfNodes("n1", "n2")
		l.reconcilePool()
		l.startAttempt(&diff.Intent{Written: []netip.Addr{nodeIP("n1"), nodeIP("n2")}, Add: 2, Desired: 2})
		l.endAttempt(diff.Written, withMembers("n1", "n2"))
		l.inSync = true

		l.BeginChapter("A label keeps n2 out, which serves; n3 is no member, and does not join.")
		labelled := func(names ...string) membership.Set {
			set := setOfNodes("n1")
			for _, name := range names {
				set.NonMembers = append(set.NonMembers, membership.NonMember{Node: name, Reason: "it is labelled x", ByLabel: true})
				set.ServingExcluded = append(set.ServingExcluded, membership.Drain{Node: name, IP: nodeIP(name), Reason: membership.ReasonExcluded})
			}
			return set
		}
		l.members, l.inSync = labelled("n2", "n3"), false
		l.changeEndpoints()
		l.startAttempt(&diff.Intent{Written: []netip.Addr{nodeIP("n1"), nodeIP("n2")}, Down: []netip.Addr{nodeIP("n2")}, Update: 1, Desired: 2})
		l.endAttempt(diff.Written, withMembers("n1", "n2"), withDown("n2"))
		l.inSync = true
		l.reconcilePool()
		l.BeginChapter("It has been Down for long enough.")
		time.Sleep(membership.LeavingTimeout)
		l.inSync = false
		l.reconcilePool()
		l.startAttempt(nil)
		l.endAttempt(diff.Written, withMembers("n1"))
		l.inSync = true
		l.reconcilePool()

		l.BeginChapter("Watches are broken: n1 seems to be gone, and n3 joins.")
		l.stale, l.members, l.inSync = true, setOfNodes("n3"), false
		l.changeEndpoints()
		l.startAttempt(&diff.Intent{Written: []netip.Addr{nodeIP("n1"), nodeIP("n3")}, Add: 1, Desired: 2})
		l.endAttempt(diff.Written, withMembers("n1", "n3"))
		l.inSync = true
		l.AddLine("%d stay", l.Retention.CountHeld())
		l.BeginChapter("The Service seems to be gone.")
		delete(l.services, l.webService()[0])
		l.reconcilePool()
		l.startAttempt(nil)
		l.BeginChapter("It is there, and so are the watches: n1 leaves.")
		l.addObjects(serviceOfType(corev1.ServiceTypeLoadBalancer))
		l.stale, l.inSync = false, false
		RecheckAt(l.Controller, l.Retention.ReleaseHeld(), time.Now())
		l.reconcilePool()
		l.startAttempt(nil)
		l.endAttempt(diff.Written, withMembers("n3"))
		l.AddLine("%d stay", l.Retention.CountHeld())

		l.BeginChapter("Watches are broken again, and restored while an attempt runs that keeps n3: n3 leaves with the next.")
		l.inSync = true
		l.reconcilePool()
		l.stale, l.members, l.inSync = true, setOfNodes("n4"), false
		l.changeEndpoints()
		l.startAttempt(&diff.Intent{Written: []netip.Addr{nodeIP("n3"), nodeIP("n4")}, Add: 1, Desired: 2})
		l.stale = false
		RecheckAt(l.Controller, l.Retention.ReleaseHeld(), time.Now())
		l.endAttempt(diff.Written, withMembers("n3", "n4"))
		l.reconcilePool()
		l.startAttempt(nil)
		l.endAttempt(diff.Written, withMembers("n4"))
		l.inSync = true
		l.reconcilePool()
	})
}
