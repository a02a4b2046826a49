// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
)

const (
	// maxKindBytes is in bytes: the kinds of 3,000 CRDs.
	maxKindBytes          = 256 << 10
	stringOverhead        = 32
	maxVersion            = 128
	maxConcurrentRequests = 8
)

// ReadCapabilities returns the version and the kinds of a target. It fails if any group version cannot be
// read, because a chart omits objects of missing kinds.
func ReadCapabilities(ctx context.Context, target rest.Interface) (version string, apis []string, err error) {
	var info struct{ GitVersion string }
	if err := getJSON(ctx, target, "/version", &info); err != nil {
		return "", nil, fmt.Errorf("version of the target: %w", err)
	}
	if len(info.GitVersion) > maxVersion {
		return "", nil, fmt.Errorf("version of the target: it has %d bytes, and at most %d are read", len(info.GitVersion), maxVersion)
	}
	r := &kindReader{target: target}
	versions, err := r.readGroupVersions(ctx)
	if err != nil {
		return "", nil, fmt.Errorf("kinds of the target: %w", err)
	}
	of := make([][]string, len(versions))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentRequests)
	for i, version := range versions {
		group.Go(func() (err error) {
			of[i], err = r.readKinds(ctx, version)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return "", nil, fmt.Errorf("kinds of the target: %w", err)
	}
	return info.GitVersion, slices.Concat(of...), nil
}

type kindReader struct {
	target     rest.Interface
	totalBytes atomic.Int64
}

// countBytes accounts for a long group version that is repeated for each kind.
func (r *kindReader) countBytes(bytes int) error {
	if r.totalBytes.Add(int64(bytes)+stringOverhead) > maxKindBytes {
		return fmt.Errorf("their names have more than %d KiB", maxKindBytes>>10)
	}
	return nil
}

func (r *kindReader) readGroupVersions(ctx context.Context) ([]string, error) {
	var core struct{ Versions []string }
	var named struct {
		Groups []struct {
			Versions []struct{ GroupVersion string }
		}
	}
	if err := errors.Join(getJSON(ctx, r.target, "/api", &core), getJSON(ctx, r.target, "/apis", &named)); err != nil {
		return nil, err
	}
	var versions []string
	for _, version := range core.Versions {
		versions = append(versions, version)
		if err := r.countBytes(len(version)); err != nil {
			return nil, err
		}
	}
	for _, group := range named.Groups {
		for _, version := range group.Versions {
			versions = append(versions, version.GroupVersion)
			if err := r.countBytes(len(version.GroupVersion)); err != nil {
				return nil, err
			}
		}
	}
	return versions, nil
}

func (r *kindReader) readKinds(ctx context.Context, groupVersion string) ([]string, error) {
	path := "/apis/" + groupVersion
	if !strings.Contains(groupVersion, "/") {
		path = "/api/" + groupVersion
	}
	var list struct{ Resources []struct{ Kind string } }
	if err := getJSON(ctx, r.target, path, &list); err != nil {
		return nil, err
	}
	kinds, seen := []string{groupVersion}, map[string]bool{}
	for _, resource := range list.Resources {
		if seen[resource.Kind] {
			continue
		}
		seen[resource.Kind] = true
		if err := r.countBytes(len(groupVersion) + len(resource.Kind)); err != nil {
			return nil, err
		}
		kinds = append(kinds, groupVersion+"/"+resource.Kind)
	}
	return kinds, nil
}

func getJSON(ctx context.Context, target rest.Interface, path string, into any) error {
	text, err := target.Get().AbsPath(path).Do(ctx).Raw()
	if err != nil {
		return err
	}
	if json.Unmarshal(text, into) != nil {
		return errors.New("the target responds with invalid JSON")
	}
	return nil
}
