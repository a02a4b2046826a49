// SPDX-License-Identifier: Apache-2.0

package servicelb

import (
	"context"
	"errors"
	"net/netip"
	"reflect"
	"time"

	"weir.dev/weir/internal/loadbalancer"
	"weir.dev/weir/internal/service"
)

// AllowRemovalAnnotation on a Service allows its addresses to be removed, however many other Services would
// lose theirs.
const AllowRemovalAnnotation = service.AllowRemoval

// blockedRetry is the retry period of a blocked removal: the cause may be fixed.
const blockedRetry = time.Minute

// Removal tracks the addresses that a Service would lose.
type Removal struct {
	addresses []netip.Addr
	// spec would lose them; the request is repeated at the given time.
	spec    *service.Spec
	retryAt time.Time
}

func (r *Removal) startBlock(w *service.Spec, addresses []netip.Addr, now time.Time) {
	if addresses == nil {
		addresses = []netip.Addr{}
	}
	*r = Removal{addresses: addresses, spec: w, retryAt: now.Add(blockedRetry)}
}

func (r *Removal) clearBlock() { *r = Removal{} }

func asRemovalError(err error) (*loadbalancer.AddressLossError, bool) {
	return errors.AsType[*loadbalancer.AddressLossError](err)
}

// isRemovalUnrequested reports whether the user did not request that the Service loses addresses. Deleting it, or changing
// its type or class, is a request.
func (settings Settings) isRemovalUnrequested(s Service, p Placement, w *service.Spec) bool {
	switch {
	case settings.AllowRemoval, s.AllowRemoval:
		return false
	case w == nil:
		return p.isGone && !p.deleting // it was deleted without an event
	}
	return true
}

// isDeletionConfirmed reports whether the API server lacks a Service that the cache lacks: the cache may be outdated.
func (r *Reconciler) isDeletionConfirmed(ctx context.Context, s Service) bool {
	exists, err := r.cfg.Cluster.Exists(ctx, s.Name, s.UID)
	if err != nil || exists {
		r.cfg.Log.WarnContext(ctx, "the cache has no such Service, and its resources in Azure remain until the API server confirms that", "service", s.Name, "exists", exists, "err", err)
	}
	return err == nil && !exists
}

// checkRemoval reports whether the request must spare addresses, and whether it must wait.
func (r *Reconciler) checkRemoval(ctx context.Context, s Service, st *State, w *service.Spec, now time.Time) (protect, pending bool) {
	if w == nil && st.Placement.isGone && !st.Placement.deleting && !r.isDeletionConfirmed(ctx, s) {
		if st.Removal.addresses == nil {
			r.recordBlocked(s, st, nil, s.StatusAddresses, now)
		}
		st.Removal.retryAt = now.Add(blockedRetry)
		return true, true
	}
	if !r.cfg.Settings.isRemovalUnrequested(s, st.Placement, w) {
		r.clearBlocked(s, st)
		return false, false
	}
	rm := &st.Removal
	if rm.addresses == nil && w == nil {
		r.recordBlocked(s, st, nil, s.StatusAddresses, now)
	}
	if rm.addresses == nil {
		return true, false
	}
	services := r.cfg.Cluster.ServicesWithAddress()
	total := r.States.countAddressed(services)
	v := r.removals.CheckService(s.Name, total, r.States.allResolved(services), now)
	switch {
	case v.Allowed:
		return false, false
	case !v.RetryAt.IsZero():
		rm.retryAt = v.RetryAt
		return true, true
	}
	r.events.reportBlocked(ctx, s, st, v.PendingCount, total)
	if w == nil { // only recreating the Service helps
		rm.retryAt = now.Add(blockedRetry)
	}
	return true, now.Before(rm.retryAt) && reflect.DeepEqual(w, rm.spec)
}

func (r *Reconciler) recordBlocked(s Service, st *State, w *service.Spec, addresses []netip.Addr, now time.Time) {
	st.Removal.startBlock(w, addresses, now)
	r.removals.AddService(s.Name, now)
}

func (r *Reconciler) clearBlocked(s Service, st *State) {
	if st.Events.failure == ConditionBlocked {
		st.Events.failure, st.Events.lastWarning = "", ""
	}
	st.Removal.clearBlock()
	r.removals.RemoveService(s.Name)
}
