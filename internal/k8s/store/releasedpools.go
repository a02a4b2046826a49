// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"weir.dev/weir/internal/k8s/metadata"
	"weir.dev/weir/internal/lb"
)

// One "id namespace/name" per line.
const keyReleasedPools = "left-pools"

// maxReleasedPools is in bytes: the ConfigMap has other keys, and the API server accepts 1 MiB.
const maxReleasedPools = 500 << 10

// ReleasedPools stores the pools Weir created and left because of foreign members. It implements
// loadbalancer.LeftPoolStore.
type ReleasedPools struct {
	Reader client.Reader
	// Writer must be the leader's fenced writer.
	Writer    client.Writer
	Namespace string
	Log       *slog.Logger
}

// ReadPools implements loadbalancer.LeftPoolStore.
func (p ReleasedPools) ReadPools(ctx context.Context) (map[lb.PoolKey]string, error) {
	r, err := Read(ctx, p.Reader, p.Namespace)
	if err != nil {
		return nil, err
	}
	return p.parsePools(r), nil
}

// parsePools skips unreadable lines: their pools count as foreign.
func (p ReleasedPools) parsePools(r Record) map[lb.PoolKey]string {
	pools := map[lb.PoolKey]string{}
	if r.object == nil {
		return pools
	}
	for line := range strings.Lines(r.object.Data[keyReleasedPools]) {
		fields := strings.Fields(line)
		id, service := lb.PoolKey(""), ""
		if len(fields) == 2 {
			id, service = lb.PoolKey(strings.ToLower(fields[0])), fields[1]
		}
		if id.LoadBalancer() == "" || strings.Count(service, "/") != 1 {
			p.Log.Warn("a pool that Weir left to others is not known any more: delete the line if it is yours",
				"configMap", metadata.Key(p.Namespace, Name), "key", keyReleasedPools, "line", fmt.Sprintf("%.200q", line))
			continue
		}
		pools[id] = service
	}
	return pools
}

// KeepPools implements loadbalancer.LeftPoolStore.
func (p ReleasedPools) KeepPools(ctx context.Context, changed map[lb.PoolKey]string) error {
	for range maxTries {
		r, err := Read(ctx, p.Reader, p.Namespace)
		if err != nil {
			return err
		}
		pools := p.parsePools(r)
		for id, service := range changed {
			if pools[id] = service; service == "" {
				delete(pools, id)
			}
		}
		var text strings.Builder
		for _, id := range slices.Sorted(maps.Keys(pools)) {
			fmt.Fprintf(&text, "%s %s\n", id, pools[id])
		}
		if text.Len() > maxReleasedPools {
			return fmt.Errorf("ConfigMap %s, key %s, would have %d bytes, and may have %d: have the owners of the addresses in these pools remove them",
				metadata.Key(p.Namespace, Name), keyReleasedPools, text.Len(), maxReleasedPools)
		}
		err = r.writeKeys(ctx, p.Writer, map[string]string{keyReleasedPools: text.String()})
		if err == nil || !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("ConfigMap %s: others change it faster than it can be written", metadata.Key(p.Namespace, Name))
}
