// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/poolupdate"
)

// errAnotherRecorded says that the ledger holds what the attempt has not seen.
var errAnotherRecorded = errors.New("another process has recorded addresses meanwhile; it is read again")

// readRecord is recorded for an attempt, which then knows what another process has recorded.
func (e *entry) readRecord() poolupdate.Recorded {
	e.mu.Lock()
	e.learnt = nil // the status holds it
	e.mu.Unlock()
	return e.recorded()
}

func (e *entry) recorded() poolupdate.Recorded {
	e.mu.Lock()
	defer e.mu.Unlock()
	return poolupdate.Recorded{
		Written: parseAddresses(e.status.WrittenAddresses), Down: downIn(e.status.Down), Taken: e.status.PoolID != "",
	}
}

// Record implements poolupdate.Ledger. On an error nothing was recorded, as far as
// the next attempt is concerned; if the API has taken it all the same, the next write
// of the status replaces it.
func (c *Cluster) Record(ctx context.Context, ref poolupdate.Ref, intent poolupdate.Intent) error {
	e := c.statuses.known(ref)
	p := c.snap.pool(ref)
	if e == nil || p == nil {
		return errGone
	}
	st := c.snap.standingOf(p)
	e.writing.Lock()
	defer e.writing.Unlock()
	e.mu.Lock()
	before, set := *e.status.DeepCopy(), e.set
	e.mu.Unlock()
	err := c.statuses.updateLocked(ctx, e, func(s *v1alpha1.BackendPoolStatus) {
		if !intent.States {
			s.PoolID = st.pool.String()
		}
		s.WrittenAddresses = formatAddresses(intent.Written)
		setDown(s, intent.Down, set, metav1.NewTime(time.Now()).Rfc3339Copy())
		unpark(s, p.Generation)
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonUpdating, updatingMessage(intent))
	})
	if err == nil && e.learned() {
		err = errAnotherRecorded
	}
	if err != nil {
		e.mu.Lock()
		e.amend(func(s *v1alpha1.BackendPoolStatus) { *s = before })
		e.revision++
		e.mu.Unlock()
		return fmt.Errorf("recording what is about to be written: %w", err)
	}
	return nil
}

// downIn returns the addresses that a status says are Down by us.
func downIn(down []v1alpha1.DownAddress) []netip.Addr {
	names := make([]string, len(down))
	for i, d := range down {
		names[i] = d.Address
	}
	return parseAddresses(names)
}

// setDown has a status say which addresses are Down by us.
func setDown(s *v1alpha1.BackendPoolStatus, ips []netip.Addr, set membership.Set, now metav1.Time) {
	s.Down, s.DownCount = downNow(s.Down, ips, set, now), nil
	if len(s.Down) > 0 {
		s.DownCount = new(int32(len(s.Down))) //nolint:gosec // a pool has at most some thousands
	}
}

// downNow says which addresses are Down by us, why, and since when. The node and the reason
// of one that the members do not speak of any more stay.
func downNow(before []v1alpha1.DownAddress, ips []netip.Addr, set membership.Set, now metav1.Time) []v1alpha1.DownAddress {
	var down []v1alpha1.DownAddress
	for _, ip := range ips {
		d := v1alpha1.DownAddress{Address: ip.String(), Since: now}
		if i := slices.IndexFunc(before, func(b v1alpha1.DownAddress) bool { return b.Address == d.Address }); i >= 0 {
			d = before[i]
		}
		if i := slices.IndexFunc(set.Draining, func(m membership.Drain) bool { return m.IP == ip }); i >= 0 {
			d.Node, d.Reason = set.Draining[i].Node, sentence(set.Draining[i].Why, maxCode)
		}
		down = append(down, d)
	}
	return down
}
