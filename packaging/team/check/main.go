// Command check reads what starts a team's server elsewhere, as strictly as what would read it there.
//
//	check compose FILE     by the compose specification, with variables of the environment
//	check kubernetes       objects on standard input, one after the other: no field that Kubernetes does not have
//
// Either prints what it read as JSON. It is a module of its own, so that what it imports is in no build of hightide.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/compose-spec/compose-go/v2/cli"
	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	documents "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// kinds are those of the chart.
var kinds = map[string]func() any{
	"v1/ConfigMap":                       func() any { return new(core.ConfigMap) },
	"v1/PersistentVolumeClaim":           func() any { return new(core.PersistentVolumeClaim) },
	"v1/Service":                         func() any { return new(core.Service) },
	"apps/v1/Deployment":                 func() any { return new(apps.Deployment) },
	"networking.k8s.io/v1/Ingress":       func() any { return new(networking.Ingress) },
	"networking.k8s.io/v1/NetworkPolicy": func() any { return new(networking.NetworkPolicy) },
}

func compose(file string) (any, error) {
	options, err := cli.NewProjectOptions([]string{file}, cli.WithOsEnv)
	if err != nil {
		return nil, err
	}
	return options.LoadProject(context.Background())
}

func kubernetes(from io.Reader) (any, error) {
	all := []any{}
	for reader := documents.NewYAMLReader(bufio.NewReader(from)); ; {
		text, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		object, err := strict(text)
		if err != nil {
			return nil, err
		}
		all = append(all, object)
	}
}

// strict reads one object.
func strict(text []byte) (any, error) {
	var of meta.TypeMeta
	if err := yaml.Unmarshal(text, &of); err != nil {
		return nil, err
	}
	made, known := kinds[of.APIVersion+"/"+of.Kind]
	if !known {
		return nil, fmt.Errorf("no kind that the chart is to have: %s %s", of.APIVersion, of.Kind)
	}
	object := made()
	if err := yaml.UnmarshalStrict(text, object); err != nil {
		return nil, fmt.Errorf("%s: %w", of.Kind, err)
	}
	return object, nil
}

func main() {
	var read any
	err := errors.New("usage: check compose FILE, or check kubernetes")
	switch {
	case len(os.Args) == 3 && os.Args[1] == "compose":
		read, err = compose(os.Args[2])
	case len(os.Args) == 2 && os.Args[1] == "kubernetes":
		read, err = kubernetes(os.Stdin)
	}
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(read)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "check:", err)
		os.Exit(1)
	}
}
