// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

const maxSize = 1 << 20

// pipeTimeout is the timeout for reading a pipe.
const pipeTimeout = 5 * time.Second

// unsupportedKeys are keys of cloud-provider-azure that Weir does not support yet.
var unsupportedKeys = []string{
	"enableMultipleStandardLoadBalancers", "systemTags", "identitySystem", "disableAzureStackCloud",
}

// otherKeys are keys of other features of cloud-provider-azure, ignored without a warning.
var otherKeys = []string{
	"vmType", "primaryAvailabilitySetName", "primaryScaleSetName", "enableVmssFlexNodes",
	"routeTableName", "routeTableResourceGroup", "useInstanceMetadata",
	"providerVaultName", "providerKeyName", "providerKeyVersion", "cloudConfigType",
	"userAgent", "disableAvailabilitySetNodes", "putVMSSVMBatchSize", "nodePoolsWithoutDedicatedSNAT",
	"enableMigrateToIPBasedBackendPoolAPI",
}

// otherKeyPattern matches cloud-provider-azure's keys of backoff, rate limits and caches.
var otherKeyPattern = regexp.MustCompile(`(?i)^(cloudProvider(Backoff|RateLimit)[a-z]*|[a-z]+(RateLimit|CacheTTLInSeconds))$`)

// Load reads azure.json, JSON or YAML, with case-insensitive keys. An error is one line with the file and the
// line, column or key. It contains neither secrets nor library messages, which may quote the file.
func Load(path string) (Config, Ignored, error) {
	content, err := readFile(path)
	if err != nil {
		return Config{}, Ignored{}, err
	}
	c, ignored, err := parseConfig(content)
	if err != nil {
		return Config{}, Ignored{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, ignored, nil
}

// readFile returns the content of a file. Reading a pipe, such as <(…), times out.
func readFile(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // O_NONBLOCK: opening a pipe would block until it has a writer
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	if err := file.SetReadDeadline(time.Now().Add(pipeTimeout)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return nil, err
	}
	content, err := io.ReadAll(io.LimitReader(file, maxSize+1))
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("%s: it is no regular file, and its end does not come within %s", path, pipeTimeout)
	case err != nil:
		return nil, err
	}
	if len(content) > maxSize {
		return nil, fmt.Errorf("%s: larger than %d bytes, which no azure.json is", path, maxSize)
	}
	return content, nil
}

func parseConfig(content []byte) (Config, Ignored, error) {
	var c Config
	keys, err := decodeFile(content)
	if err != nil {
		return Config{}, Ignored{}, err
	}
	rest, err := assignKeys(reflect.ValueOf(&c).Elem(), keys, "")
	if err == nil {
		err = c.Normalize()
	}
	if err != nil {
		return Config{}, Ignored{}, addPosition(content, err)
	}
	ignored := Ignored{Different: differencesOf(keys)}
	for _, key := range rest {
		isSame := func(k string) bool { return strings.EqualFold(k, key) }
		known := slices.IndexFunc(unsupportedKeys, isSame)
		switch {
		case slices.ContainsFunc(otherKeys, isSame), otherKeyPattern.MatchString(key):
		case known < 0 && visiblePath(key) != key:
			ignored.Unprintable++
		case known < 0:
			ignored.Unknown = append(ignored.Unknown, key)
		case !isEmpty(keys[key]):
			ignored.Unsupported = append(ignored.Unsupported, unsupportedKeys[known])
		}
	}
	return c, ignored, nil
}

func isEmpty(value json.RawMessage) bool { return string(value) == "null" || string(value) == `""` }
