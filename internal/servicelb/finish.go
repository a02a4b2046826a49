// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"weir.dev/weir/internal/balancer"
	"weir.dev/weir/internal/contest"
	"weir.dev/weir/internal/lb"
	"weir.dev/weir/internal/service"
)

// settle processes the result of a request. A *retryError means the request must be repeated. After any other
// error, the result is kept and persisted again.
func (r *Reconciler) settle(ctx context.Context, s Service, e *entry, res balancer.Result, now time.Time) error {
	if err := r.dropGone(ctx, res); err != nil {
		return err
	}
	if err := r.linked(ctx, s, e, res); err != nil {
		return err
	}
	st := &e.State
	if res.Closes {
		r.settleClosing(ctx, s, st, res, now)
		return nil
	}
	step := Settle(res, s.Ours(r.cfg.Settings.Class), st.Level.looked(st.Pending, res.Request))
	if step != Hold {
		r.tell.keptPools(s, &st.Told, res.Kept)
	}
	var failed error
	switch step {
	case Hold:
		held, _ := wouldLose(res.Err)
		st.Level.drop() // after a move by labels the spec is unchanged
		r.loses(s, st, res.Desired, held.Addresses, now)
	case Complain, TryAgain:
		st.Level.drop() // it may be partly applied
		if step == Complain {
			r.tell.complain(s, &st.Told, troubleOf(res.Err), failedTo(res), res.Err)
		}
		r.tell.warn(ctx, &st.Told, "load balancer not as the Service wants it", res.Service, res.Err)
		failed = &retryError{error: res.Err}
	case Defer:
		r.tell.deferred(s, &st.Told, res.Err)
		failed = &retryError{error: res.Err}
	case PutOff:
		failed = &retryError{error: res.Err}
	case Drop:
		st.Level.drop() // Azure has changed
	case Fill, Empty, Release, Finish:
		st.Told.had = st.Told.had || (step == Empty || step == Release) && res.Changed
		if err := r.writeDown(ctx, s, e, step, res, now); err != nil {
			r.unwritten(s, st, err)
			return err
		}
		if step == Finish && res.Link.Err != nil {
			failed = r.unlinked(ctx, s, st, res.Link.Err)
		}
	}
	if st.Pending.settled(); failed == nil {
		st.Waiting.succeeds()
	}
	return failed
}

func failedTo(res balancer.Result) string {
	if res.Desired == nil {
		return "failed to delete load balancer: "
	}
	return "failed to ensure load balancer: "
}

// unwritten warns once about an error that will not resolve by itself.
func (r *Reconciler) unwritten(s Service, st *State, err error) {
	if errors.Is(err, ErrNameTaken) || !r.cfg.Ledger.Passes(err) && !errors.Is(err, ErrGone) && !errors.Is(err, ErrStillGoing) {
		r.tell.complainOnce(s, &st.Told, Failed, "", err)
	}
}

// writeDown persists the result of a request: BackendPools, then the status, then the record.
func (r *Reconciler) writeDown(ctx context.Context, s Service, e *entry, step Step, res balancer.Result, now time.Time) error {
	if err := r.writePools(ctx, s, e, step, res, now); err != nil {
		return err
	}
	observed, publishes := e.Level.addresses, true
	switch step {
	case Finish:
		publishes = false
		if err := r.concludes(ctx, s, &e.State, res, now); err != nil {
			return err
		}
	case Fill: // a moving Service keeps its address until it can leave
		publishes = len(res.Leave) == 0
	case Empty, Release: // it keeps the retained address
		observed, publishes = nil, !s.Deleting && !res.Awaits
	}
	if publishes {
		if err := r.cfg.Ledger.Publish(ctx, s, observed); err != nil {
			return err
		}
	}
	return r.conclude(ctx, s, &e.State, step, res, now)
}

func (r *Reconciler) writePools(ctx context.Context, s Service, e *entry, step Step, res balancer.Result, now time.Time) error {
	st := &e.State
	switch step {
	case Empty:
		return r.empty(ctx, s, e, res, now)
	case Release: // Azure has no parts of it left
		if err := r.cfg.Ledger.DropInterim(ctx, res.Without); err != nil {
			return err
		}
		return r.cfg.Ledger.DropPools(ctx, s, nil, res.Without)
	case Fill:
		// Fill the new pools before flows move. Until then, the present rules, BackendPools and addresses
		// remain.
		st.Level.drop()
		st.Filling.begins(res, now)
		r.States.showFilling(e) // publish first: the pool may be filled at once
		r.tell.filling(s, &st.Told, res.Filling)
		if _, err := r.createPools(ctx, s, res.On, res.Pools); err != nil {
			return err
		}
	default:
		if err := r.MakePools(ctx, s, res); err != nil {
			// Nodes are usually placed by the next try.
			if reason, ok := errors.AsType[NotPlacedError](err); ok && reason.Why != "" {
				r.tell.complainOnce(s, &st.Told, Failed, err.Error(), nil)
			}
			return err
		}
		if err := r.empty(ctx, s, e, res, now); err != nil {
			return err
		}
		has := Record{Places: union([]string{res.On.Name}, e.Emptying.balancers()), Groups: r.cfg.Settings.groupsOf(res.Desired), LinkGroups: r.cfg.Settings.linkGroups(res.Desired)}
		if len(res.Emptying) > 0 { // a public IP remains with the load balancer
			has.Groups = union(has.Groups, res.Groups)
		}
		if res.Link.Err != nil || res.Link.Stays { // unwanted parts may still exist
			has.LinkGroups = res.LinkGroups
		}
		if err := r.record(ctx, s, st, has); err != nil {
			return err
		}
	}
	st.Level.shows(res.Addresses)
	return nil
}

func (r *Reconciler) conclude(ctx context.Context, s Service, st *State, step Step, res balancer.Result, now time.Time) error {
	switch step {
	case Finish:
		if err := r.contested(ctx, s, st, res.Contests); err != nil {
			return err
		}
		r.tell.unusedIPs(s, &st.Told, res.Unused)
		if res.Link.Err == nil || st.Told.announced {
			r.tell.ensured(s, &st.Told, res) // before Removal is cleared
		}
		r.spared(s, st)
		st.Level.reached(res, st.Pending, now, r.cfg.Settings.LookAgainAfter)
		st.Closing.record(res.Desired.Restriction())
	case Empty:
		r.States.Holds(s, nil)
		st.Level.drop()
		if !res.Awaits {
			st.Level.shows(nil)
		}
	case Release:
		if !s.Deleting {
			if err := r.contested(ctx, s, st, nil); err != nil {
				return err
			}
			if err := r.writes(ctx, s, st, Conclusion{Verdicts: noVerdicts()}); err != nil {
				return err
			}
		}
		r.States.Holds(s, nil)
		if err := r.record(ctx, s, st, Record{}); err != nil {
			return err
		}
		r.tell.deleted(s, &st.Told)
		r.spared(s, st)
		st.Level.drop()
		st.Level.shows(nil)
		st.Placement.free = true
		st.Closing = Closing{}
	}
	return nil
}

func (r *Reconciler) dropGone(ctx context.Context, res balancer.Result) error {
	for _, id := range res.Gone {
		if err := r.cfg.Ledger.DropNodePools(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// MakePools creates the BackendPools of a Service, now that Azure has its pools, and deletes former ones.
func (r *Reconciler) MakePools(ctx context.Context, s Service, res balancer.Result) error {
	names, err := r.createPools(ctx, s, res.On, res.Pools)
	if err != nil {
		return err
	}
	if err := r.cfg.Ledger.DropInterim(ctx, res.Without); err != nil {
		return err
	}
	return r.cfg.Ledger.DropPools(ctx, s, names, res.Without)
}

func (r *Reconciler) createPools(ctx context.Context, s Service, on lb.LoadBalancerID, pools []service.Pool) (names []string, err error) {
	if r.States.Holds(s, &Served{on, pools}) { // existing BackendPools wait for this
		r.cfg.Ledger.Served(s)
	}
	return r.cfg.Ledger.MakePools(ctx, s, on, pools)
}

func (r *Reconciler) contested(ctx context.Context, s Service, st *State, contests []contest.Contest) error {
	if st.Placement.absent {
		return nil
	}
	is := Verdict{Type: typeContests}
	if len(contests) > 0 {
		is.Text = fmt.Sprint(contests)
	}
	if err := r.cfg.Ledger.Contested(ctx, s, contests, st.Told.writes(is)); err != nil {
		return err
	}
	st.Told.wrote[typeContests] = is
	for _, c := range contests {
		reported := slices.ContainsFunc(st.Level.contests, func(o contest.Contest) bool { return o.In == c.In && o.Until.Equal(c.Until) })
		if !reported && !c.Until.IsZero() {
			r.cfg.Reporter.Tell(s, Event{Reason: ReasonContested, Warning: true, Contest: &c, Of: len(contests)})
		}
	}
	st.Level.contests = contests
	return nil
}
