// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"weir.dev/weir/internal/armerror"
)

func (d *documentClient) resourceVersion(t target) string {
	return d.versions.ResourceVersion(t.id.Type, t.id.String())
}

// requiredVersion returns the api-version that a rejection requires; empty if there is none newer than
// sent.
func requiredVersion(err error, sent string) string {
	resp, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || resp.StatusCode != http.StatusBadRequest {
		return ""
	}
	if !slices.Contains(parseCodes(resp.RawResponse), armerror.CodeOldAPIVersion) {
		return ""
	}
	newest := ""
	for _, e := range parseErrors(resp.RawResponse) {
		newest = max(newest, findNewerVersion(e.Message, sent))
	}
	return newest
}

// writeWithVersion reads the resource with a newer api-version and writes it once. It needs only read
// permission. If the provider lacks the api-version, it returns rejected.
func (d *documentClient) writeWithVersion(ctx context.Context, r request, version string, rejected error) (acceptedWrite, error) {
	doc, err := d.readVersion(ctx, r.call.target, version)
	if err != nil {
		if resp, ok := errors.AsType[*azcore.ResponseError](err); ok && rejected != nil && isVersionUnsupported(resp) {
			return acceptedWrite{}, rejected
		}
		return acceptedWrite{}, err
	}
	d.versions.StoreVersion(r.call.id.String(), version)
	*r.origin = doc
	body, err := r.encodeBody()
	if err != nil {
		return acceptedWrite{}, err
	}
	r.call = &call{op: r.call.op, target: r.call.target}
	return d.sendWrite(ctx, r, version, body)
}

func isVersionUnsupported(resp *azcore.ResponseError) bool {
	return slices.ContainsFunc(parseCodes(resp.RawResponse), func(code string) bool {
		return slices.Contains([]string{"NoRegisteredProviderFound", "InvalidApiVersionParameter", "InvalidResourceType"}, code)
	})
}
