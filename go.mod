module hightide

go 1.26
