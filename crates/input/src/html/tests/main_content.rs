//! Which part of a page is its main content.

use super::*;

const PROSE: &str = "The quick brown fox jumps over the lazy dog, and then it runs off into the wood behind the old mill.";
const MORE: &str = "No man in the village has seen it since, although the dog still barks at the trees every evening.";
const LINKS: &str =
    "<div><a href=/>Home</a> <a href=/a>About us</a> <a href=/b>All the articles</a></div>";

/// A teaser of another page, longer than the least prose.
fn teaser() -> String {
    format!("<div><a href=/c>Read this</a></div><div>{MORE}</div>")
}

#[test]
fn links_around_the_prose_are_left_out() {
    let body = format!("<h1>A fox</h1><p>{PROSE}</p><p>Short.</p><p>{MORE}</p>");
    let page = format!("{LINKS}<div>Tuesday</div>{body}{LINKS}<div>Imprint</div>");
    assert_eq!(main(&page), format!("A fox\n{PROSE}\nShort.\n{MORE}"));
}

#[test]
fn prose_far_from_the_rest_is_left_out_where_it_is_little() {
    let body = format!("<p>{PROSE}</p>").repeat(6);
    let many = "<p><a href=/x>x</a></p>".repeat(200);
    let far = "<p><a href=/x>x</a></p>".repeat(7);
    let near = "<p><a href=/x>x</a></p>".repeat(6);
    let (far, near) = (format!("{far}<p>x</p>"), format!("{near}<p>x</p>"));
    let found = main(&format!("{many}{body}{far}<p>{MORE}</p>"));
    assert!(found.contains(PROSE) && !found.contains(MORE));
    let (far, body) = (format!("{far}{many}"), format!("{many}{body}"));
    assert!(main(&format!("{body}{near}<p>{MORE}</p>")).contains(MORE));
    assert!(main(&format!("<p>{PROSE}</p>{far}<p>{MORE}</p>")).contains(MORE));
}

#[test]
fn the_smallest_region_with_a_third_of_the_prose_is_taken() {
    let article = format!("<article><header><h1>A fox</h1></header><p>{PROSE}<p>No.</article>");
    let page = format!("<main>{}{article}{}</main>", teaser(), teaser());
    let expected = format!("A fox\n{PROSE}\nNo.");
    assert_eq!(main(&page), expected);
    for region in ["<div role=main>", "<div itemprop=articleBody>"] {
        let page = format!(
            "{}{region}<div>A fox</div><p>{PROSE}<p>No.</div>{}",
            teaser(),
            teaser()
        );
        assert_eq!(main(&page), expected, "{region}");
    }
    // Teasers that are articles themselves.
    let teasers = format!("<article>{}</article>", teaser()).repeat(9);
    let page = format!("<main><p>{}</p></main>{teasers}", PROSE.repeat(9));
    assert_eq!(main(&page), PROSE.repeat(9));
}

/// A page of a manual: its title and how a command is written are no prose, and stand before it.
#[test]
fn the_smallest_element_with_nearly_all_prose_is_taken_with_what_is_short_in_it() {
    let manual = format!(
        "<h1>fox</h1><p>Jumps.</p><h2>Synopsis</h2><pre>fox --over dog</pre><h2>Description</h2><p>{PROSE}</p>\
         <ul><li>quick</li><li>brown</li></ul>"
    );
    let expected =
        format!("fox\nJumps.\nSynopsis\nfox --over dog\nDescription\n{PROSE}\nquick\nbrown");
    let plain = format!("<div>Search</div><div>{manual}</div>{LINKS}<div>fox 1.0</div>");
    assert_eq!(main(&plain), expected);
    let marked = format!("<div>Search</div><main>{manual}</main>{LINKS}<div>fox 1.0</div>");
    assert_eq!(main(&marked), expected);
    // Where less than nine tenths of the prose are in one element, the page is.
    let other = format!("<div><p>{PROSE}</p></div>");
    let both = main(&format!(
        "<div>Search</div><div>{manual}</div>{other}<div>1.0</div>"
    ));
    assert_eq!(both.matches(PROSE).count(), 2);
    assert!(!both.contains("Search") && !both.contains("1.0"), "{both}");
    // Where most of it is no prose, and links are around it, the prose alone is taken.
    let prose = format!("<p>{PROSE}</p>").repeat(5);
    let words = "<p>x y z</p>".repeat(800);
    let thin = format!("<div>{words}{prose}{words}</div>");
    let links = LINKS.repeat(100);
    assert_eq!(main(&format!("{links}{thin}")), [PROSE; 5].join("\n"));
    assert_eq!(main(&thin).matches("x y z").count(), 1600);
}

/// Terms of use, or a line about the author.
#[test]
fn the_last_paragraph_may_be_a_notice_behind_the_element_with_all_others() {
    let start = "<h1>fox</h1><p>Jumps.</p><h2>Description</h2>";
    let article = format!("<div>{start}<p>{PROSE}</p><p>{PROSE}</p></div>");
    let expected = format!("fox\nJumps.\nDescription\n{PROSE}\n{PROSE}");
    let links = LINKS.repeat(9);
    let notice = format!("<div><p>{MORE}</p></div>");
    for page in [
        format!("{links}<div>{article}{notice}</div>"),
        format!("{article}{links}{notice}"),
        format!(
            "<h3><a href=/>The zoo</a></h3>{article}{links}<aside><h4>See</h4></aside>{notice}"
        ),
    ] {
        assert_eq!(main(&page), expected);
    }
    // A section of its own, a page of two parts, or more than one paragraph is no notice.
    let half = format!("<div>{start}<p>{PROSE}</p></div>");
    for rest in [
        format!("<h2>Habits</h2>{notice}"),
        format!("<h2>Habits</h2><p>It sleeps.</p>{notice}"),
        notice.repeat(2),
    ] {
        let found = main(&format!("{links}{article}{rest}"));
        assert!(found.contains(MORE), "{found}");
    }
    let found = main(&format!("{links}{half}<div><p>{PROSE}{MORE}</p></div>"));
    assert!(found.contains(MORE), "{found}");
    let found = main(&format!("{notice}{links}{article}"));
    assert!(found.contains(MORE), "{found}");
    // The last step of a list with its own element, and a text of terms before an article of one paragraph.
    let steps = format!("<ol>{}</ol>", format!("<li>{PROSE}</li>").repeat(3));
    let recipe = format!("<div><h1>Fox pie</h1><p>Short.</p>{steps}<p>{MORE}</p></div>");
    let found = main(&format!("{links}{recipe}"));
    assert!(
        found.starts_with("Fox pie\n") && found.ends_with(MORE),
        "{found}"
    );
    let terms = format!("<div><p>{PROSE}</p><p>{PROSE}</p></div>");
    for title in ["<b>Fox</b>", "<header><h1>Fox</h1></header>"] {
        let found = main(&format!("{terms}{links}<div>{title}<p>{MORE}</p></div>"));
        assert!(found.contains(MORE), "{found}");
    }
}

/// A sidebar, a box of cookies and the name of the site may have headings.
#[test]
fn a_part_that_begins_with_the_title_is_taken_from_there() {
    let article = format!("<p>{PROSE}</p><p>{PROSE}</p><h2>Habits</h2><p>{PROSE}</p>");
    let own = format!("<div><h2>Foxes</h2>{article}</div>");
    let beside = "<div><h2>About</h2><p>A blog of the wood.</p></div>";
    let found = main(&format!("{beside}{own}<div>Bye.</div>"));
    assert!(found.starts_with("Foxes\n"), "{found}");
    let found = main(&format!(
        "{beside}<h1>Foxes</h1><p>2026</p><div>{article}</div><div>Bye.</div>"
    ));
    assert!(found.starts_with("Foxes\n2026\n"), "{found}");
}

/// Manuals of one page, and lists of functions.
#[test]
fn a_page_with_few_links_needs_no_layout() {
    let entry = format!("<h3>fox_jump</h3><pre>int fox_jump()</pre><p>{PROSE}</p>");
    let short = "<dt>int fox_run()</dt><dd>Runs.</dd>".repeat(100);
    let index = "<ul>".to_owned() + &"<li><a href=#f>fox</a></li>".repeat(30) + "</ul>";
    let page = format!("<h1>Foxes</h1>{index}{entry}<dl>{short}</dl>{entry}{entry}");
    let found = main(&page);
    assert_eq!(found.matches("int fox_run()\nRuns.").count(), 100);
    assert!(found.starts_with("Foxes\nfox_jump\n"), "{found}");
    // An element that holds the article is taken with its title, but without the name of the site.
    let found = main(&format!(
        "<h1>The zoo</h1><div>Search</div><div>{page}</div>"
    ));
    assert!(found.starts_with("Foxes\n"), "{found}");
    let article = format!("<div>{}</div>", entry.repeat(12));
    let start = format!("<h2>Foxes</h2><p>2026</p><p>{PROSE}</p>");
    let found = main(&format!("<div>Search</div>{start}{article}"));
    assert!(found.starts_with("Foxes\n2026\n"), "{found}");
    // What is short behind the last long paragraph is part of it, and the name of the site, which is a link, is not.
    let options = "<dt>-f</dt><dd>Jumps.</dd>".repeat(10);
    let site = "<h1><a href=/>The zoo</a></h1><div>Search</div>";
    let found = main(&format!("{site}<h2>Foxes</h2>{entry}{entry}{options}"));
    assert_eq!(found.matches("-f\nJumps.").count(), 10);
    assert!(found.starts_with("Foxes\nfox_jump\n"), "{found}");
    // Unless there is no other heading.
    let own = "<h1><a href=/jumps>How foxes jump</a></h1>";
    let found = main(&format!(
        "<div>Search</div>{own}<p>{PROSE}</p><p>{PROSE}</p>"
    ));
    assert!(found.starts_with("How foxes jump\n"), "{found}");
    // The only long paragraph is in an element that holds little else.
    let one = format!("<div>{entry}<p>Short.</p></div>");
    let found = main(&format!("<h1>Foxes</h1>{index}<div>{short}</div>{one}"));
    assert_eq!(found.matches("Runs.").count(), 100);
    assert!(found.contains(PROSE));
}

/// Else all pages with that line would be alike.
#[test]
fn a_line_beside_what_is_aside_does_not_stand_for_the_page() {
    let menu = "<p>Onion soup, 5.50</p>".repeat(60);
    let hours = "<h1>Opening hours</h1><p>Mon to Fri, 9 to 5</p><p>Sat, 10 to 2</p>";
    let prose = format!("<p>{PROSE}</p>").repeat(5);
    for (page, part) in [
        (
            format!("<div class=menu>{menu}</div><p>© 2024</p>"),
            "Onion",
        ),
        (format!("<nav>{menu}</nav><p>© 2024 Bistro</p>"), "Onion"),
        (format!("<header>{hours}</header><p>Back</p>"), "Opening"),
        (format!("<footer>{prose}</footer><p>OK</p>"), PROSE),
    ] {
        let found = main(&page);
        assert!(found.contains(part), "{found}");
    }
    // With a heading, it is a page beside links: else all pages with these would be alike.
    let links = LINKS.repeat(20);
    let short = main(&format!(
        "<nav>{links}</nav><h1>Onion soup</h1><p>Sold out.</p>"
    ));
    assert_eq!(short, "Onion soup\nSold out.");
    // But not beside a text, which then is what tells the pages apart.
    for beside in ["menu", "comments"] {
        let page = format!("<h1>Today</h1><div class={beside}>{menu}</div><p>© 2024</p>");
        assert!(main(&page).contains("Onion"), "{beside}");
    }
}

#[test]
fn a_page_of_links_keeps_them() {
    let links = "<p><a href=/c>One chapter of many</a></p>".repeat(50);
    let chapters = "One chapter of many\n".repeat(50);
    let nav = "<nav>Menu</nav>";
    for page in [
        format!("{nav}<p>Chapters</p>{links}<p>{PROSE}</p>"),
        format!("{nav}<div>Menu</div><main><p>Chapters</p>{links}<p>{PROSE}</p></main>"),
    ] {
        assert_eq!(main(&page), format!("Chapters\n{chapters}{PROSE}"));
    }
    let few = "<p><a href=/c>One chapter of many</a></p>".repeat(20);
    assert_eq!(main(&format!("{nav}{few}<p>{PROSE}</p>")), PROSE);
    // Where there is more prose, it is no page of links.
    let article = format!("<p>{PROSE}</p>").repeat(5);
    let found = main(&format!("{nav}{}{article}", links.repeat(5)));
    assert_eq!(found.lines().count(), 5);
    // Without any prose, navigation is left out if enough is left.
    assert_eq!(main(&format!("{nav}{links}")), chapters.trim_end());
}

#[test]
fn an_id_that_names_the_content_goes_before_a_class() {
    let page = |attributes: &str| {
        format!("<div>x</div><div {attributes}><p>{PROSE}</p></div><div><p>{MORE}</p></div>")
    };
    for attributes in [
        "class=sidebar-left id=content",
        "id=the-post class=comments",
        "class='page withsidebar'",
        "class=has-sidebar",
        "class=page-with-sidebar",
        "class=no-sidebar",
    ] {
        let found = main(&page(attributes));
        assert_eq!(found, format!("{PROSE}\n{MORE}"), "{attributes}");
    }
    for attributes in [
        "class=sidebar id=left",
        "id=fixed-sidebar class=withsidebar",
        "id=comments class=post",
        "id=copyright",
        "hidden id=post",
    ] {
        assert_eq!(main(&page(attributes)), MORE, "{attributes}");
    }
}

/// Generators of pages make ids of sections from their headings.
#[test]
fn an_id_that_is_made_from_a_heading_says_nothing() {
    for start in [
        "<section id=related-objects>",
        "<section id=comments>",
        "<div class=section id=related-objects>",
        "<div id=related-objects class='a section'>",
        "<div id=how-to-walk-related-objects>",
        "<div id=why_is_order_by_recommended>",
    ] {
        let name = start[1..].split(' ').next().unwrap();
        let section = format!("{start}<h2 id=sharing>Menu</h2><p>{MORE}</p></{name}>");
        let page = format!("<main><h1>A fox</h1><p>{PROSE}</p>{section}</main>");
        let expected = format!("A fox\n{PROSE}\nMenu\n{MORE}");
        assert_eq!(main(&page), expected, "{start}");
        assert_eq!(main(&page.replace("main", "div")), expected, "{start}");
    }
    let beside = format!("<div id=social-share-box><p>{MORE}</p></div>");
    assert_eq!(main(&format!("<p>{PROSE}</p>{beside}")), PROSE);
    // Nor does it speak against a class.
    for start in [
        "<div class=sidebar id=block-views-related-content-block>",
        "<section class=sidebar id=main-results>",
    ] {
        let name = start[1..].split(' ').next().unwrap();
        let beside = format!("{start}<p>{MORE}</p></{name}>");
        assert_eq!(main(&format!("<p>{PROSE}</p>{beside}")), PROSE, "{start}");
    }
    let content = format!("<section class=sidebar-right id=content><p>{MORE}</p></section>");
    let both = format!("{PROSE}\n{MORE}");
    assert_eq!(main(&format!("<p>{PROSE}</p>{content}")), both);
}

/// A layout may be named by the sidebar that it has.
#[test]
fn an_element_that_holds_the_content_is_not_beside_it() {
    let nav = "<div>Search</div>";
    let article = format!("<h1>A fox</h1><p>{PROSE}</p>");
    for start in [
        "<div class='layout sidebar-left'>",
        "<div id=has-menu>",
        "<div class=toolbar-fixed>",
    ] {
        let page = format!("{nav}{start}{article}</div>{nav}");
        assert_eq!(main(&page), format!("A fox\n{PROSE}"), "{start}");
        // Without a title, it must hold nearly all prose and half of the text.
        let untitled = format!("{start}<p>{PROSE}</p><p>x</p></div>");
        let expected = format!("{PROSE}\nx");
        assert_eq!(main(&format!("{nav}{untitled}")), expected, "{start}");
        assert!(
            !main(&format!("{untitled}<p>{MORE}</p>")).contains(PROSE),
            "{start}"
        );
        let pictures = "<div>A picture</div>".repeat(20);
        assert!(
            !main(&format!("{untitled}{pictures}")).contains(PROSE),
            "{start}"
        );
    }
    // The same where it has no long paragraph.
    let lines = "<p>Open from 9 to 5</p>".repeat(80);
    let hours = format!("<div class='layout sidebar-left'><h1>Opening hours</h1>{lines}</div>");
    let found = main(&format!("{hours}<p>{PROSE}</p>"));
    assert_eq!(found.lines().count(), 82, "{found}");
    // A heading of the first level is the title, wherever it is.
    let sidebar = format!("<div class=sidebar><h3>About me</h3><p>{MORE}</p></div>");
    assert_eq!(
        main(&format!("{sidebar}<div>{article}</div>")),
        format!("A fox\n{PROSE}")
    );
    // The name of a site may be in its sidebar.
    for logo in ["<h1><a href=/>The Fox</a></h1>", "<div>The Fox</div>"] {
        let sidebar = format!("<div class=sidebar>{logo}<p>{MORE}</p></div>");
        assert_eq!(main(&format!("{sidebar}<p>{PROSE}</p>")), PROSE, "{logo}");
    }
}

#[test]
fn the_only_region_of_a_page_of_little_prose_is_taken_however_short_it_is() {
    let moved = "<h1>Moved!</h1><p>See the other page.</p>";
    for (start, end) in [("<main>", "</main>"), ("<div role=main>", "</div>")] {
        let page = format!("{LINKS}{start}{moved}{end}<div><p>{MORE}</p></div>");
        assert_eq!(main(&page), "Moved!\nSee the other page.", "{start}");
        // With more prose beside it, it is not what the page is about.
        let long = format!("{page}<div><p>{}</p></div>", PROSE.repeat(4));
        assert!(main(&long).contains(PROSE), "{start}");
        let two = format!("{page}{start}No.{end}");
        assert_ne!(main(&two), "Moved!\nSee the other page.", "{start}");
    }
}

/// Posts of a thread, say.
#[test]
fn regions_beside_each_other_that_hold_a_third_of_the_prose_each_are_all_taken() {
    let post = |text: &str| format!("<article><h2>A fox</h2><p>{text}</p></article>");
    let of_post = |text: &str| format!("A fox\n{text}");
    let posts = [PROSE, MORE, PROSE, MORE];
    for number in 2..=4 {
        let thread: String = posts[..number].iter().copied().map(post).collect();
        let expected: Vec<String> = posts[..number].iter().copied().map(of_post).collect();
        let page = format!("{LINKS}<main>{thread}</main>{LINKS}");
        assert_eq!(main(&page), expected.join("\n"), "{number}");
    }
}

#[test]
fn a_note_beside_many_short_lines_does_not_replace_them() {
    let lines = "<p>Line 5 leaves at 10:05</p>".repeat(200);
    let note = format!("<div class=hint><p>{PROSE}</p><p>2026</p></div>");
    let found = main(&format!(
        "{LINKS}<div><h1>Timetable</h1>{lines}</div>{note}"
    ));
    assert_eq!(found.matches("Line 5").count(), 200);
    assert!(
        found.contains(PROSE) && found.contains("Timetable"),
        "{found}"
    );
}

#[test]
fn long_comments_do_not_replace_what_they_are_about() {
    let comments = format!(
        "<div id=comments>{}</div>",
        format!("<p>{MORE}</p>").repeat(12)
    );
    for article in [
        format!("<article><p>{PROSE}</p></article>"),
        format!("<article><h1>A fox</h1><p>{PROSE}</p></article>"),
        format!("<div><h2>A fox</h2><p>{PROSE}</p></div>"),
        format!("<article><h1>A fox</h1><p>{PROSE}</p><p>Bavaria, 2020</p></article>"),
    ] {
        let found = main(&format!("{article}{comments}"));
        assert!(
            found.contains(PROSE) && !found.contains(MORE),
            "{article}: {found}"
        );
    }
}

/// A line about cookies or the law stands outside of many layouts.
#[test]
fn a_layout_that_is_named_by_its_sidebar_stays_beside_a_heading_and_a_line_of_law() {
    let article = format!(
        "<div class=sidebar-right><h3>Install</h3>{}</div>",
        format!("<p>{PROSE}</p>").repeat(10)
    );
    let found = main(&format!("<h2>The Fox</h2>{article}<p>{MORE}</p>"));
    assert_eq!(found.matches(PROSE).count(), 10, "{found}");
}

#[test]
fn links_do_not_drown_a_short_article_nor_make_a_menu_content() {
    let links = "<li><a href=/a>Navigation entry number one</a></li>".repeat(150);
    let article = format!("<div class=text><p>Title</p><p>{PROSE}</p><p>{MORE}</p></div>");
    for start in ["<div class=nav>", "<div class=menu><h3>Products</h3>"] {
        let page = format!("{start}<ul>{links}</ul></div>{article}");
        assert_eq!(main(&page), format!("Title\n{PROSE}\n{MORE}"), "{start}");
    }
}

/// Issues, and documentation that is made from comments of code.
#[test]
fn comments_are_the_content_where_all_prose_is_in_them() {
    let comment = |text: &str| format!("<div class=timeline-comment><p>{text}</p></div>");
    let comments = (comment(PROSE) + &comment(MORE)).repeat(3);
    let page = format!("{LINKS}<main><h1>Crash</h1>{comments}</main>");
    let expected = format!("{PROSE}\n{MORE}\n").repeat(3);
    assert_eq!(main(&page), format!("Crash\n{expected}").trim_end());
    // A line of law is on pages without prose, too.
    let law = format!("<div id=footer><p>{PROSE}</p><p>{MORE}</p></div>");
    let lines = "<p>See there.</p>".repeat(9);
    let found = main(&format!("<div><h1>Types</h1>{lines}</div>{law}"));
    assert!(!found.contains(PROSE), "{found}");
    // A note about cookies is little of a page of short lines.
    let lines = "<p>Open from 9 to 5</p>".repeat(40);
    let page = format!("<div>{lines}</div><div class=cookies><p>{PROSE}</p></div>");
    assert!(!main(&page).contains(PROSE));
}

#[test]
fn comments_do_not_replace_an_article_without_long_paragraphs() {
    let comments = |number| {
        let comments = format!("<p>{MORE}</p>").repeat(number);
        format!("<div id=comments>{comments}</div>")
    };
    let article = "<article><h1>A fox</h1><p>Bavaria, 2020</p></article>";
    for number in [4, 12] {
        let found = main(&format!("{article}{}", comments(number)));
        assert_eq!(found, "A fox\nBavaria, 2020", "{number}");
    }
    // A heading of the comments is no title.
    let entry = format!("<p>{PROSE}</p>").repeat(3);
    let comments = comments(4).replace("<p>", "<h3>4 comments</h3><p>");
    assert!(!main(&format!("<div>{entry}</div>{comments}")).contains(MORE));
}

/// Highlighted code, a heading of a wiki, and the signature of a function.
#[test]
fn parts_of_lines_and_terms_are_no_parts_of_a_layout() {
    let code = "<pre>let x = 1; <span class=hljs-comment>// the retries left</span></pre>";
    let heading = "<h2><span class=headline id=Social_life>Social life</span></h2>";
    let term = "<dl><dt id=wx.Menu>class Menu(title)</dt><dd>x</dd></dl>";
    let page = format!("<div><p>{PROSE}</p>{code}{heading}{term}<p>{MORE}</p></div>");
    let expected = format!(
        "{PROSE}\nlet x = 1; // the retries left\nSocial life\nclass Menu(title)\nx\n{MORE}"
    );
    assert_eq!(main(&page), expected);
}

/// Cells stand in a line: what is before the second one is not in it.
#[test]
fn a_cell_holds_what_is_in_it() {
    let page = format!(
        "<p>Menu</p><table><tr><td><p>Old</p>Imprint here<td><p>{PROSE}</p><p>Short.</p></table>"
    );
    assert_eq!(main(&page), format!("{PROSE}\nShort."));
}

#[test]
fn elements_beside_the_content_are_left_out() {
    for (start, end) in [
        ("<nav>", "</nav>"),
        ("<aside>", "</aside>"),
        ("<footer>", "</footer>"),
        ("<header>", "</header>"),
        ("<div role=navigation>", "</div>"),
        ("<div class='a site-footer b'>", "</div>"),
        ("<div id=sidebarLeft>", "</div>"),
        ("<section class=sidebar>", "</section>"),
        ("<div class=comments><nav><div>x</div></nav>", "</div>"),
    ] {
        let beside = format!("{start}<div>x</div><p>{MORE}</p>{end}");
        let page = format!("{beside}<p>{PROSE}</p>{beside}");
        assert_eq!(main(&page), PROSE, "{start}");
    }
    for role in [
        "alert",
        "banner",
        "complementary",
        "contentinfo",
        "dialog",
        "menu",
        "menubar",
        "navigation",
        "search",
    ] {
        let page = format!("<div role={role}><p>{MORE}</p></div><p>{PROSE}</p>");
        assert_eq!(main(&page), PROSE, "{role}");
    }
    let both = format!("<div class='article has-sidebar'>{PROSE}</div>");
    assert_eq!(main(&both), PROSE);
    let form = format!("<form>{LINKS}<p>{PROSE}</p><button>Send</button></form>");
    assert_eq!(main(&form), PROSE);
}

/// Whatever the order of the attributes.
#[test]
fn what_the_author_says_of_an_element_goes_before_its_class_and_that_before_the_name_article() {
    for start in [
        "<main class=with-sidebar>",
        "<main id=sidebar>",
        "<div role=main class=sidebar>",
        "<div class=sidebar role=main>",
        "<div itemprop=articleBody id=related>",
        "<div id=related itemprop=articleBody>",
        "<aside role=article>",
    ] {
        let name = start[1..].split(' ').next().unwrap();
        let page = format!("{start}<p>{PROSE}</p></{name}><div>{MORE}</div>");
        assert_eq!(main(&page), PROSE, "{start}");
    }
    for start in ["<article class=related>", "<article role=complementary>"] {
        let page = format!("{start}<p>{MORE}</p></article><p>{PROSE}</p>");
        assert_eq!(main(&page), PROSE, "{start}");
    }
}

#[test]
fn a_block_is_prose_with_less_than_a_third_of_links_and_goes_with_it_with_up_to_half() {
    let block = |linked: usize, weight: usize| {
        let rest = "b".repeat(weight - linked);
        format!("<p><a href=x>{}</a>{rest}</p>", "a".repeat(linked))
    };
    let is_kept = |page: &str, linked: usize| main(page).contains(&"a".repeat(linked));
    for (linked, kept) in [(29, true), (30, false)] {
        let page = format!("{LINKS}{LINKS}{}<p>{PROSE}</p>", block(linked, 90));
        assert_eq!(is_kept(&page, linked), kept, "{linked}");
    }
    for (linked, kept) in [(10, true), (11, false)] {
        let page = format!("<p>{PROSE}</p>{}<p>{PROSE}</p>", block(linked, 20));
        assert_eq!(is_kept(&page, linked), kept, "{linked}");
    }
}

#[test]
fn a_page_without_prose_and_with_few_words_gives_all_its_text() {
    for page in [
        format!("{LINKS}<p>Short.</p>"),
        format!("<nav><p>{PROSE}</p>"),
        "Hello".to_owned(),
    ] {
        assert_eq!(main(&page), all(&page), "{page}");
        assert!(!main(&page).is_empty());
    }
}

#[test]
fn no_language_is_preferred() {
    for (link, text) in [
        (
            "首页",
            "敏捷的棕色狐狸跳过懒狗然后跑进了树林，村里再也没有人见过它。",
        ),
        (
            "ホーム",
            "素早い茶色の狐がのろまな犬を飛び越えて森の中へ走り去っていった。",
        ),
        (
            "หน้าแรก",
            "สุนัขจิ้งจอกสีน้ำตาลกระโดดข้ามสุนัขขี้เกียจแล้ววิ่งหายเข้าไปในป่าไม่มีใครเห็นอีกเลย",
        ),
        (
            "Главная",
            "Съешь же ещё этих мягких французских булок, да выпей чаю, и лиса убежит в лес навсегда.",
        ),
        (
            "الرئيسية",
            "قفز الثعلب البني السريع فوق الكلب الكسول ثم ركض إلى الغابة ولم يره أحد في القرية منذ ذلك اليوم",
        ),
    ] {
        let links = format!("<div><a href=/>{link}</a> <a href=/b>{link}</a></div>");
        assert_eq!(main(&format!("{links}<p>{text}</p>{links}")), text);
    }
}

/// The pages differ in all but their main content.
#[test]
fn the_same_article_in_another_design_has_the_same_text() {
    let body = format!("<h1>A fox</h1><p>{PROSE}</p><p>{MORE}</p>");
    let old =
        format!("{LINKS}<table><tr><td>{LINKS}<td>{body}</table><center>Visitors: 7</center>");
    let new = format!(
        "<header><nav>{LINKS}</nav></header><main>{body}</main><aside>{}</aside><footer>2026</footer>",
        teaser()
    );
    assert_eq!(main(&old), main(&new));
    assert_ne!(all(&old), all(&new));
}
