// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/kube/view"
	"weir.dev/weir/internal/lb"
)

// One "id namespace/name" per line.
const keyLeftPools = "left-pools"

// maxLeftPools is in bytes: the ConfigMap has other keys, and the API server accepts 1 MiB.
const maxLeftPools = 500 << 10

// LeftPools stores the pools Weir created and left because of foreign members. It implements
// leftpool.Store.
type LeftPools struct {
	Reader client.Reader
	// Writer must be the leader's fenced writer.
	Writer    client.Writer
	Namespace string
	Log       *slog.Logger
}

// ReadPools implements leftpool.Store.
func (p LeftPools) ReadPools(ctx context.Context) (map[lb.PoolKey]string, error) {
	r, err := Read(ctx, p.Reader, p.Namespace)
	if err != nil {
		return nil, err
	}
	return p.parse(r), nil
}

// parse skips unreadable lines: their pools count as foreign.
func (p LeftPools) parse(r Record) map[lb.PoolKey]string {
	all := map[lb.PoolKey]string{}
	if r.object == nil {
		return all
	}
	for line := range strings.Lines(r.object.Data[keyLeftPools]) {
		fields := strings.Fields(line)
		id, service := lb.PoolKey(""), ""
		if len(fields) == 2 {
			id, service = lb.PoolKey(strings.ToLower(fields[0])), fields[1]
		}
		if id.LoadBalancer() == "" || strings.Count(service, "/") != 1 {
			p.Log.Warn("a pool that Weir left to others is not known any more: delete the line if it is yours",
				"configMap", view.Key(p.Namespace, Name), "key", keyLeftPools, "line", fmt.Sprintf("%.200q", line))
			continue
		}
		all[id] = service
	}
	return all
}

// KeepPools implements leftpool.Store.
func (p LeftPools) KeepPools(ctx context.Context, changed map[lb.PoolKey]string) error {
	for range tries {
		r, err := Read(ctx, p.Reader, p.Namespace)
		if err != nil {
			return err
		}
		all := p.parse(r)
		for id, service := range changed {
			if all[id] = service; service == "" {
				delete(all, id)
			}
		}
		var text strings.Builder
		for _, id := range slices.Sorted(maps.Keys(all)) {
			fmt.Fprintf(&text, "%s %s\n", id, all[id])
		}
		if text.Len() > maxLeftPools {
			return fmt.Errorf("ConfigMap %s, key %s, would have %d bytes, and may have %d: have the owners of the addresses in these pools remove them",
				view.Key(p.Namespace, Name), keyLeftPools, text.Len(), maxLeftPools)
		}
		err = r.set(ctx, p.Writer, map[string]string{keyLeftPools: text.String()})
		if err == nil || !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("ConfigMap %s: others change it faster than it can be written", view.Key(p.Namespace, Name))
}
