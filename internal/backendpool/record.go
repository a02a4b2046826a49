// SPDX-License-Identifier: Apache-2.0

package backendpool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"weir.dev/weir/api/v1alpha1"
	"weir.dev/weir/internal/membership"
	"weir.dev/weir/internal/once"
	"weir.dev/weir/internal/poolschedule"
	"weir.dev/weir/internal/poolwrite"
	"weir.dev/weir/internal/words"
)

// errAnotherRecorded says that the ledger holds what the attempt has not seen.
var errAnotherRecorded = errors.New("another process has recorded addresses meanwhile; it is read again")

// readRecord is Recorded for an attempt, which then knows what another process has recorded.
func (e *Entry) readRecord() poolwrite.Recorded {
	e.mu.Lock()
	e.learnt = nil // the status holds it
	e.mu.Unlock()
	return e.Recorded()
}

// Recorded is what is on record of the pool.
func (e *Entry) Recorded() poolwrite.Recorded {
	e.mu.Lock()
	defer e.mu.Unlock()
	return poolwrite.Recorded{
		Written: parseAddresses(e.status.WrittenAddresses), Down: downIn(e.status.Down), Taken: e.status.PoolID != "",
	}
}

// Record implements poolattempt.Ledger. On an error nothing was recorded, as far as
// the next attempt is concerned; if the API has taken it all the same, the next write
// of the status replaces it.
func (c *Controller) Record(ctx context.Context, ref poolschedule.Ref, intent poolwrite.Intent) error {
	e, p := c.known(ref)
	if p == nil {
		return ErrGone
	}
	pool := c.Entitlement(p).Pool
	e.writing <- struct{}{}
	defer func() { <-e.writing }()
	before, set := e.beforeRecord()
	err := c.statuses.updateInTurn(ctx, e, func(s *v1alpha1.BackendPoolStatus) {
		if !intent.States {
			s.PoolID = pool.String()
		}
		s.WrittenAddresses = formatAddresses(intent.Written)
		setDown(s, intent.Down, set, metav1.NewTime(time.Now()).Rfc3339Copy())
		unpark(s, p.Generation)
		setCondition(s, p.Generation, v1alpha1.ConditionSynced, metav1.ConditionFalse, v1alpha1.ReasonUpdating, updatingMessage(intent))
	})
	if err = e.judgeRecord(before, err); err != nil {
		return fmt.Errorf("recording what is about to be written: %w", err)
	}
	return nil
}

// beforeRecord returns the status as it is, and what the attempt works with.
func (e *Entry) beforeRecord() (v1alpha1.BackendPoolStatus, membership.Set) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return *e.status.DeepCopy(), *cmp.Or(e.set, &membership.Set{})
}

// judgeRecord has the status be as it was, and written once more, if recording failed, or another
// has recorded something that no attempt has seen.
func (e *Entry) judgeRecord(before v1alpha1.BackendPoolStatus, err error) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err == nil && e.learnt == nil {
		return nil
	}
	if err == nil {
		err = errAnotherRecorded
	}
	e.amend(func(s *v1alpha1.BackendPoolStatus) { *s = before })
	e.revision++
	return err
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
			d.Node, d.Reason = set.Draining[i].Node, words.Sentence(set.Draining[i].Why, words.MaxCode)
		}
		down = append(down, d)
	}
	return down
}

// parseAddresses reads a status; what is no address was not written by Weir.
func parseAddresses(written []string) []netip.Addr {
	ips := make([]netip.Addr, 0, len(written))
	for _, s := range written {
		if ip, err := netip.ParseAddr(s); err == nil {
			ips = append(ips, ip)
		}
	}
	return ips
}

func formatAddresses(ips []netip.Addr) []string {
	out := make([]string, len(ips))
	for i, ip := range ips {
		out[i] = once.Text(ip.String()) // a thousand pools have the addresses of the same nodes
	}
	return out
}
