package gpus

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"sync"

	"hightide/internal/mem"
)

// Instance is a machine that a cloud rents: GPUs of one kind with a host.
type Instance struct {
	Name     string
	Provider string
	GPU      string // its slug in the catalogue
	Count    int
	VCPUs    int
	Memory   mem.Bytes // of the host
	Price    float64   // of the machine, in USD an hour
	Source   string
	Date     string
	Notes    string
}

//go:embed instances.csv
var instances string

var parsedInstances = sync.OnceValues(func() ([]Instance, error) { return readInstances(strings.NewReader(instances)) })

// Instances are the machines that hightide knows, in the order of their file.
func Instances() []Instance {
	all, err := parsedInstances()
	if err != nil {
		panic(err) // embedded, and a test reads it
	}
	return all
}

func readInstances(in io.Reader) (all []Instance, err error) {
	r := csv.NewReader(in)
	header, err := r.Read()
	if err != nil {
		return nil, err
	}
	for {
		fields, err := r.Read()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		row := record{values: map[string]string{}}
		for i, name := range header {
			row.values[name] = strings.TrimSpace(fields[i])
		}
		v := row.values
		one := Instance{Name: v["instance"], Provider: v["provider"], GPU: v["gpu"], Count: int(row.number("count")),
			VCPUs: int(row.number("vcpus")), Memory: mem.Bytes(row.number("memory_GiB") * float64(mem.GiB)),
			Price: row.number("price_usd_per_hour"), Source: v["price_source"], Date: v["price_date"], Notes: v["notes"]}
		if row.err != nil {
			return nil, fmt.Errorf("%s: %w", one.Name, row.err)
		}
		all = append(all, one)
	}
}
