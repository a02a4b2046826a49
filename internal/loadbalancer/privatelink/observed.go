// SPDX-License-Identifier: Apache-2.0

package privatelink

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"weir.dev/weir/internal/armerror"
	"weir.dev/weir/internal/lb"
)

// observedLinks records the Private Link Services that Azure returns. It is safe for concurrent use.
type observedLinks struct {
	Azure

	mu   sync.Mutex
	byID map[string]lb.PrivateLinkService // by lower-case ID; only the ID and frontends
}

// ListObserved returns the IDs and frontends of the Private Link Services as last read or written, in the resource groups
// that were read.
func (rec *Reconciler) ListObserved() []lb.PrivateLinkService {
	o := rec.observed
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(maps.Values(o.byID))
}

func (o *observedLinks) recordLocked(p lb.PrivateLinkService) {
	o.byID[strings.ToLower(p.ID.String())] = lb.PrivateLinkService{ID: p.ID, Frontends: p.Frontends}
}

// List implements Azure.
func (o *observedLinks) List(ctx context.Context, subscription, resourceGroup string) ([]lb.PrivateLinkService, error) {
	links, err := o.Azure.List(ctx, subscription, resourceGroup)
	if f := armerror.FromError(err); f != nil && f.Class != armerror.Stale {
		return links, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	maps.DeleteFunc(o.byID, func(_ string, p lb.PrivateLinkService) bool {
		return strings.EqualFold(p.ID.SubscriptionID, subscription) && strings.EqualFold(p.ID.ResourceGroup, resourceGroup)
	})
	for _, p := range links {
		o.recordLocked(p)
	}
	return links, err
}

// Put implements Azure.
func (o *observedLinks) Put(ctx context.Context, next lb.PrivateLinkService) (lb.PrivateLinkService, error) {
	written, err := o.Azure.Put(ctx, next)
	if err == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.recordLocked(written)
	}
	return written, err
}

// Delete implements Azure.
func (o *observedLinks) Delete(ctx context.Context, p lb.PrivateLinkService) error {
	err := o.Azure.Delete(ctx, p)
	if err == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		delete(o.byID, strings.ToLower(p.ID.String()))
	}
	return err
}
