package mcp

import (
	"context"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A run's report is a resource, as large as it is: an assistant reads it where the tool's answer does not do.
const (
	reportPrefix = "hightide://runs/"
	reportSuffix = "/report"
)

func (d *door) addResources(server *sdk.Server) {
	server.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "report", Title: "Report of a run", URITemplate: reportPrefix + "{run}" + reportSuffix,
		MIMEType:    "application/json",
		Description: "The whole report of a recorded run, with its curves and tables, as hightide report --json has it.",
	}, d.readReport)
}

func (d *door) readReport(ctx context.Context, request *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := request.Params.URI
	ref := strings.TrimSuffix(strings.TrimPrefix(uri, reportPrefix), reportSuffix)
	if err := d.readable(ref); err != nil {
		return nil, oneLine(err, nil)
	}
	r, _, err := d.engine.Report(ctx, ref)
	if err != nil {
		return nil, oneLine(err, nil)
	}
	text, err := r.JSON()
	if err != nil {
		return nil, oneLine(err, nil)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, MIMEType: "application/json",
		Text: string(text)}}}, nil
}
